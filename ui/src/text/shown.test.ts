import { expect, it } from "vitest";
import { literal } from "./query";
import { BREAK, type ShownPart, ShownText } from "./shown";

const answer = (text: string, thinking = "", writing = false) => ({
  role: "assistant",
  shownParts: [
    { kind: "thinking" as const, text: thinking },
    { kind: "text" as const, text },
  ],
  writing,
});

function read(text: ShownText, source: Parameters<ShownText["read"]>[0]): ShownText {
  while (!text.read(source));
  return text;
}

const count = (text: string, query: string, thinking = ""): number => {
  const pattern = literal(query);
  return pattern ? read(new ShownText(), answer(text, thinking)).count(pattern) : -1;
};

it.each([
  ["a **bold** text", "bold text", 1],
  ["a **bold** text", "**bold", 0],
  ["one\ntwo\nthree", "one two  three", 1],
  ["one  \ntwo", "one two", 1],
  ["one\n\ntwo", "one two", 0],
  ["- one\n- two", "one two", 0],
  ["- one\n- two", "two", 1],
  ["| a | b |\n|---|---|\n| c d | e |", "c d", 1],
  ["| a | b |\n|---|---|\n| c d | e |", "d e", 0],
  ["| a | b |\n|---|---|", "---", 0],
  ["```python\nfor x in y:\n    print(x)\n```", "y: print(x)", 1],
  ["```python\nfor x in y:\n```", "python", 0],
  ["- one\n\n  ```python\n  x < 1 && y\n  ```", "x < 1 && y", 1],
  ["- one\n\n  ```python\n  x = 1\n  ```", "copy", 0],
  ["Tom &amp; Jerry’s “1 < 2”", "tom & jerry’s “1 < 2”", 1],
  ["[the article](https://example.org/secret)", "the article", 1],
  ["[the article](https://example.org/secret)", "secret", 0],
  ["![a picture](https://example.org/p.png)", "a picture", 1],
  ["Ein Wintergoldhähnchen, l’ÉTÉ", "GOLDHAHNCHEN", 1],
  ["Ein Wintergoldhähnchen, l’ÉTÉ", "été", 1],
  ["C++ (1 + r)^n *.ts", "c++ (1 + R)^", 1],
  ["a\\*b", "a*b", 1],
  ["so $x^2$ it is", "it is", 1],
  ["so $x^2$ it is", "$x", 0],
  ["السلام عليكم", "عليكم", 1],
  ["aaaa", "aa", 2],
  ["", "a", 0],
])("%j has %j %i times", (text, query, times) => expect(count(text, query)).toBe(times));

it("finds nothing for an empty query", () => {
  expect(literal(" \u0301 ")).toBeNull();
  expect(literal(BREAK)?.test("a\nb")).toBe(false);
});

it("a question is found as it was written, with its line ends", () => {
  const question = { ...answer("a **bold**\n\ntext"), role: "user" };
  const text = read(new ShownText(), question);
  expect(text.count(literal("**bold** text") as RegExp)).toBe(1);
});

it("tells the parts from each other, and where matches stand", () => {
  const text = read(new ShownText(), answer("The bird and the **bird**.", "A bird, they ask."));
  const bird = literal("bird") as RegExp;
  expect(text.count(bird)).toBe(3);
  expect([0, 1, 2].map((nth) => text.placeOf(bird, nth))).toEqual([
    { part: 0, nthInPart: 0 },
    { part: 1, nthInPart: 0 },
    { part: 1, nthInPart: 1 },
  ]);
  const offsets = [0, 1, 2].map((nth) => text.offsetOf(bird, nth));
  expect(offsets.map((offset) => text.countBefore(bird, offset))).toEqual([0, 1, 2]);
  // A longer query continues from the current position.
  const more = literal("bird.") as RegExp;
  expect(text.countBefore(more, offsets[2] ?? 0)).toBe(0);
  expect(text.countBefore(literal("b") as RegExp, offsets[1] ?? 0)).toBe(1);
});

it("finds the name and arguments of a call, and its result, as they are", () => {
  const parts: ShownPart[] = [
    { kind: "text", text: "I *weigh* it." },
    { kind: "tool-call", name: "weigh_bird", arguments: '{"bird": "**wren**"}' },
    { kind: "tool-result", text: "**9** g, said the bird" },
    { kind: "text", text: "A bird of nine grams." },
  ];
  const text = read(new ShownText(), { role: "assistant", shownParts: parts, writing: false });
  const found = (query: string): number[] => {
    const pattern = literal(query) as RegExp;
    const nths = Array.from({ length: text.count(pattern) }, (_, nth) => nth);
    return nths.map((nth) => text.placeOf(pattern, nth).part);
  };
  expect(found("weigh")).toEqual([0, 1]);
  expect(found("bird")).toEqual([1, 1, 2, 3]);
  expect(found("**wren**")).toEqual([1]);
  expect(found("**9** g")).toEqual([2]);
  expect(found("weigh_bird {")).toEqual([]);
});

it("a table that is cut has its head once", () => {
  const rows = Array.from({ length: 2000 }, (_, at) => `| row ${at} | x |\n`).join("");
  expect(count(`| Header | b |\n|---|---|\n${rows}`, "header")).toBeLessThanOrEqual(1 + 2000 / 20);
  expect(count(`| Header | b |\n|---|---|\n${rows}`, "row")).toBe(2000);
});

it("an answer that grows is counted as one that came whole, and costs no more the longer it is", () => {
  const section = "A bird in **the** hedge.\n\n- one bird\n- two birds\n\n```js\nbird()\n```\n\n";
  const bird = literal("bird") as RegExp;
  const text = new ShownText();
  let whole = "";
  const spent: number[] = [];
  for (let turn = 0; turn < 600; turn++) {
    whole += section;
    const source = answer(whole, "", true);
    const started = performance.now();
    read(text, source);
    expect(text.count(bird)).toBe(4 * (turn + 1));
    spent.push(performance.now() - started);
  }
  expect(text.placeOf(bird, 2399)).toEqual({ part: 1, nthInPart: 2399 });
  const sum = (some: number[]): number => some.reduce((all, each) => all + each, 0);
  const [early, late] = [sum(spent.slice(100, 200)), sum(spent.slice(500))];
  expect(late).toBeLessThan(3 * early + 20);
  expect(read(text, answer(whole)).count(bird)).toBe(2400);
});
