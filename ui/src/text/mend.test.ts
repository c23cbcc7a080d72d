import { describe, expect, test } from "vitest";
import { mend } from "./mend";

describe("what has begun is closed", () => {
  test.each([
    ["some **bold te", "some **bold te**"],
    ["some `code", "some `code`"],
    ["see [the page](https://a.exa", "see the page"],
    ["see ![a bird](", "see a bird"],
    ["done **bold** and `code`", "done **bold** and `code`"],
  ])("%s", (text, mended) => {
    expect(mend(text)).toBe(mended);
  });
});

describe("what means nothing yet is held back", () => {
  test.each([
    ["text\n\n2", "text\n\n"],
    ["text\n\n2.", "text\n\n"],
    ["text\n\n-", "text\n\n"],
    ["text\n\n##", "text\n\n"],
    ["text\n\n``", "text\n\n"],
    ["text **", "text "],
    ["text `", "text "],
    ["text\n\n| a | b", "text\n\n"],
    ["text\n\n| a | b |\n", "text\n\n"],
    ["text\n\n| a | b |\n|--", "text\n\n"],
  ])("%j", (text, mended) => {
    expect(mend(text)).toBe(mended);
  });
});

test("a table is shown from its second row on", () => {
  const table = "| a | b |\n|---|---|\n";
  expect(mend(table)).toBe(table);
  expect(mend(`${table}| 1 | 2`)).toBe(table);
});

test("nothing is touched in a fence that is open", () => {
  const code = "```sh\necho `date` **\n|";
  expect(mend(code)).toBe(code);
});

test("years and sums at the start of a finished line stay", () => {
  expect(mend("In\n\n1999 was a year")).toBe("In\n\n1999 was a year");
});
