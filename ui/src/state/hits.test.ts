import { expect, test } from "vitest";
import type { ChatHits, SearchHit } from "../host/host";
import { hitGroup, noteOn } from "./hits";
import { parts, partsAt } from "../text/snippet";

test("hits are separated from the text around them", () => {
  expect(parts("a \uE000small\uE001 bird, \uE000small\uE001\nand gold", true)).toEqual([
    { text: "a ", hit: false },
    { text: "small", hit: true },
    { text: " bird, ", hit: false },
    { text: "small", hit: true },
    { text: " and gold", hit: false },
  ]);
});

test("a hit that was cut off is still a hit", () => {
  expect(parts("\uE000small", true)).toEqual([{ text: "small", hit: true }]);
});

test.each([
  ["…Difference |\n|---:|---:|\n| \uE0005\uE001 | $1,159 |…", "…Difference 5 $1,159…"],
  ["…---|---:|\n| 5 | **\uE000x\uE001** |", "…5 x"],
  ["$$\nA = \\\uE000frac\uE001{\\ln 2}{3}\n$$", "A = (ln 2)/3"],
  ["…\\frac{\\ln 2}{3}\n$$\n\nA \uE000small\uE001 one", "…(ln 2)/3 A small one"],
  ["in [the \uE000article\uE001 on…", "in the article on…"],
  ["in [the \uE000article\uE001](https://a.ex…", "in the article…"],
  ["…\\ln(1 + r)}\n$$\n\nA \uE000small\uE001 one", "…ln(1 + r) A small one"],
  ["foo_\uE000bar_baz\uE001", "foo_bar_baz"],
  ["a \uE000foo\uE001_bar_baz", "a foo_bar_baz"],
  ["`__\uE000init\uE001__` and __\uE000init\uE001__(self)", "__init__ and __init__(self)"],
  ["_\uE000so\uE001_, __very \uE000so\uE001__", "so, very so"],
  ["C# and \uE000.NET\uE001, C and .NET", "C# and .NET, C and .NET"],
  ["2 \uE000*\uE001 3, **b**, \uE000**\uE001kwargs", "2 * 3, b, **kwargs"],
  ["\uE000|\uE001 and a|b", "| and a b"],
  ["…# 5 \uE000of\uE001 them", "…# 5 of them"],
  ["…- \uE0005\uE001 degrees", "…- 5 degrees"],
  ["in C:\\\uE000Users\uE001\\ada_b\\x", "in C:\\Users\\ada_b\\x"],
  ["echo $$ \uE000now\uE001 {a_b}", "echo $$ now {a_b}"],
  ["```c\n#include <\uE000a\uE001>\n*p = x_y_z;\n```\n\n*so*", "#include <a> *p = x_y_z; so"],
  ["5*\uE0003\uE001 and *args", "5*3 and *args"],
  ["## The `\uE000cache\uE001` and [a link](https://a.example)", "The cache and a link"],
])("%j is shown as %j", (snippet, shown) => {
  expect(
    parts(snippet, true)
      .map(({ text }) => text)
      .join(""),
  ).toBe(shown);
});

test("what a person or the thinking has written is shown as it is", () => {
  const snippet = "…# a_\uE000b\uE001_ `c` **d**\n| $x$ .NET …";
  const shown = parts(snippet, false).map(({ text }) => text);
  expect(shown.join("")).toBe("…# a_b_ `c` **d** | $x$ .NET …");
});

test("a text is cut at the places of what was found", () => {
  expect(partsAt("a small bird", [[2, 7]])).toEqual([
    { text: "a ", hit: false },
    { text: "small", hit: true },
    { text: " bird", hit: false },
  ]);
});

const hit = (message: number, snippet: string): SearchHit => ({
  message,
  role: "user",
  kind: "text",
  snippet,
  at: 1,
});

const chat = (title: string, inTitle: boolean, hits: SearchHit[]): ChatHits => ({
  chat: 1,
  title,
  inTitle,
  at: 9,
  hits,
  count: hits.length,
});

test("a chat whose title was found begins with it, and its messages follow", () => {
  const hits = [hit(11, "the \uE000planet\uE001 Mars"), hit(12, "a \uE000planet\uE001")];
  const group = hitGroup({ ...chat("\uE000Planet\uE001s", true, hits), count: 7 });
  expect(group.title).toEqual([
    { text: "Planet", hit: true },
    { text: "s", hit: false },
  ]);
  expect(group.lines.map(({ message, parts: { length } }) => [message, length])).toEqual([
    [null, 0],
    [11, 3],
    [12, 2],
  ]);
  expect(group.more).toBe(5);
});

test("only the text of an answer is Markdown", () => {
  const snippet = 'weigh {"a_\uE000bird\uE001_": "*wren*"}';
  const answer = { ...hit(11, snippet), role: "assistant" as const };
  const shown = (kind: SearchHit["kind"]): string | undefined =>
    hitGroup(chat("x", false, [{ ...answer, kind }]))
      .lines[0]?.parts.map(({ text }) => text)
      .join("");
  expect(shown("text")).toBe('weigh {"a_bird": "wren"}');
  for (const kind of ["thinking", "tool-call", "tool-result"] as const)
    expect(shown(kind)).toBe('weigh {"a_bird_": "*wren*"}');
});

test("a message that its title repeats is shown once, and leads to the message", () => {
  const title = "How do \uE000planet\uE001s move?";
  const hits = [hit(11, title), hit(12, "A \uE000planet\uE001 moves"), hit(13, title)];
  for (const inTitle of [true, false]) {
    const { lines, more } = hitGroup(chat(title, inTitle, hits));
    expect(lines.map(({ message, parts: { length } }) => [message, length])).toEqual([
      [11, 0],
      [12, 3],
    ]);
    expect(more).toBe(0);
  }
});

test("the title of a hit cannot be reordered, and keeps its signs", () => {
  const { title } = hitGroup(chat("good\u202Efugg.exe and __\uE000init\uE001__", true, []));
  expect(title.map(({ text }) => text).join("")).toBe("goodfugg.exe and __init__");
});

test("an answer that lacks something says so", () => {
  const chats = [chat("x", true, [])];
  expect(noteOn({ chats, more: false, indexing: false })).toBeNull();
  expect(noteOn({ chats, more: true, indexing: false })).toMatch(/^More chats/u);
  expect(noteOn({ chats: [], more: false, indexing: true })).toMatch(/indexed/u);
});
