import { expect, test } from "vitest";
import { parts } from "./snippet";

test("hits are told from the text around them", () => {
  expect(parts("a \uE000small\uE001 bird, \uE000small\uE001\nand gold")).toEqual([
    { text: "a ", hit: false },
    { text: "small", hit: true },
    { text: " bird, ", hit: false },
    { text: "small", hit: true },
    { text: " and gold", hit: false },
  ]);
});

test("a hit that was cut off is still a hit", () => {
  expect(parts("\uE000small")).toEqual([{ text: "small", hit: true }]);
});
