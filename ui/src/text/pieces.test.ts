import { describe, expect, test } from "vitest";
import { PieceReader } from "./pieces";

const most = { lines: 3, characters: 10 };
const pieces = (text: string): string[] => new PieceReader(most).read(text);

test("a piece ends with its last line, or where it is too long", () => {
  expect(pieces("")).toEqual([""]);
  expect(pieces("a\nb")).toEqual(["a\nb"]);
  expect(pieces("a\nb\nc\nd\n")).toEqual(["a\nb\nc\n", "d\n"]);
  expect(pieces("abc\nabc\nabcdefg\n")).toEqual(["abc\nabc\n", "abcdefg\n"]);
  expect(pieces("abcdefg hijklm")).toEqual(["abcdefg ", "hijklm"]);
  expect(pieces("abcdefghijklm")).toEqual(["abcdefghij", "klm"]);
  expect(pieces("abcdefghi🐦")).toEqual(["abcdefghi", "🐦"]);
});

describe("a text that grows is cut as the whole is", () => {
  test.each([
    "one two three\nfour\n\n\nfive sixseveneightnine\nten ",
    "aaaaaaaaaaaaaaaaaaaaaaaa",
    "\n\n\n\n\n\n\n",
  ])("%j", (text) => {
    const reader = new PieceReader(most);
    for (let at = 0; at <= text.length; at++) {
      const read = reader.read(text.slice(0, at));
      expect(read.join("")).toBe(text.slice(0, at));
      expect(read).toEqual(pieces(text.slice(0, at)));
    }
  });
});

test("another text starts over", () => {
  const reader = new PieceReader(most);
  reader.read("a\nb\nc\nd");
  expect(reader.read("x\nb\nc\nd")).toEqual(["x\nb\nc\n", "d"]);
});
