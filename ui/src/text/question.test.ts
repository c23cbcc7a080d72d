import { expect, it } from "vitest";
import { questionParts } from "./question";

/**
 * Parts in short notation: words as they are, code in brackets, blocks in braces, no delimiters.
 */
function shown(...pieces: string[]): string[] {
  const parts = questionParts(pieces);
  expect(parts.map((of) => of.map((part) => part.text).join(""))).toEqual(pieces);
  const short = { words: (it: string) => it, code: (it: string) => `[${it}]`, mark: () => "" };
  const block = (it: string) => `{${it}}`;
  return parts.map((of) => of.map(({ kind, text }) => ({ ...short, block })[kind](text)).join(""));
}

it.each([
  ["no code", "no code"],
  ["why does `x = 1` fail?", "why does [x = 1] fail?"],
  ["``a `b` c`` and `d`", "[a `b` c] and [d]"],
  ["one ` alone, and `` two", "one ` alone, and `` two"],
  ["over `two\nlines`", "over `two\nlines`"],
  ["See:\n```js\nlet x;\n```\nplease", "See:\n{let x;\n}please"],
  ["~~~\na `b`\n```\n~~~", "{a `b`\n```\n}"],
  ["```\nno end", "{no end}"],
  ["a ```b``` c", "a [b] c"],
  ["# no *Markdown*", "# no *Markdown*"],
  ["", ""],
])("shows the code of %j", (text, expected) => {
  expect(shown(text)).toEqual([expected]);
});

it("goes on with a block in the next piece", () => {
  expect(shown("```\na\n", "b\n", "```\n`c`")).toEqual(["{a\n}", "{b\n}", "[c]"]);
});

it("takes long texts in their time", () => {
  const text = "` `` a".repeat(20_000);
  const start = performance.now();
  questionParts([text]);
  expect(performance.now() - start).toBeLessThan(1000);
});
