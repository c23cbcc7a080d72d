import { expect, test } from "vitest";
import { pasteFacts } from "./paste";

test.each([
  [25_000, "25 KB", "about 6,250 tokens", true],
  [999_000, "999 KB", "about 250,000 tokens", false],
  [1_036_664, "1 MB", "about 259,000 tokens", false],
  [2_500_000, "2.5 MB", "about 625,000 tokens", false],
])("%d letters are %s, %s", (letters, size, tokens, fits) => {
  expect(pasteFacts("x".repeat(letters), 32_768)).toEqual({ size, tokens, fits });
});

test("letters of several bytes count as such, and without a model all fits", () => {
  expect(pasteFacts("日".repeat(30_000), 0)).toEqual({
    size: "90 KB",
    tokens: "about 22,500 tokens",
    fits: true,
  });
});
