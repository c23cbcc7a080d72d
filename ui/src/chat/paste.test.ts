import { expect, test } from "vitest";
import { pasteFacts } from "./paste";

test.each([
  [25_000, "25 KB", "about 6,250 tokens", true],
  [130_000, "130 KB", "about 32,500 tokens", false],
  [1_036_664, "1 MB", "about 259,000 tokens", false],
  [2_500_000, "2.5 MB", "about 625,000 tokens", false],
])("%d letters are %s, %s until they are counted", (letters, size, tokens, fits) => {
  expect(pasteFacts("x".repeat(letters), null, 31_500)).toEqual({ size, tokens, fits });
});

test("what was counted is said as it is, and has to fit without what is kept for the answer", () => {
  const text = "x".repeat(130_000);
  const counted = (tokens: number): unknown => pasteFacts(text, tokens, 31_500);
  expect(counted(31_500)).toEqual({ size: "130 KB", tokens: "31,500 tokens", fits: true });
  expect(counted(31_501)).toMatchObject({ tokens: "31,501 tokens", fits: false });
});

test("letters of several bytes count as such, and without a model all fits", () => {
  expect(pasteFacts("日".repeat(30_000), null, null)).toEqual({
    size: "90 KB",
    tokens: "about 22,500 tokens",
    fits: true,
  });
});
