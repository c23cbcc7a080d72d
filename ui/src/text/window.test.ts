import { expect, test } from "vitest";
import { withoutBidiControls } from "./bidi";
import { BlockReader } from "./blocks";
import { endOfWindow } from "./window";

/** Successive windows of a text. */
function windows(text: string): string[] {
  const all: string[] = [];
  for (let from = 0; from < text.length;) {
    const end = endOfWindow(text, from);
    all.push(text.slice(from, end));
    from = end;
  }
  return all;
}

const controls = (text: string): number => text.length - withoutBidiControls(text).length;

test("a paragraph full of characters that set a direction is cut into small windows", () => {
  const text = "\u2066word\u2069 up ".repeat(600);
  const cut = windows(text);
  expect(cut.join("")).toBe(text);
  for (const window of cut) expect(controls(window)).toBeLessThan(140);
  const blocks = new BlockReader().read(text, false).groups.flat();
  expect(blocks.length).toBeGreaterThan(8);
});

test.each([..."\u061C\u200E\u200F\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069"])(
  "the direction character %# costs more than a letter",
  (control) => expect(windows(`${control}a`.repeat(3_000)).length).toBeGreaterThan(10),
);

test("what scripts and emoji need costs what a letter costs", () => {
  const letters = windows("ab".repeat(6_000)).map(({ length }) => length);
  for (const joiner of "\u200B\u200C\u200D") {
    const cut = windows(`a${joiner}`.repeat(6_000)).map(({ length }) => length);
    expect(cut).toEqual(letters);
  }
});
