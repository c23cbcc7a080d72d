import { expect, it } from "vitest";
import { count, rate, size, timeLeft, tokens, wait } from "./figures";

it("groups the digits of whole numbers", () => {
  expect([0, 999, 1536, 131072, 1234567].map(count)).toEqual([
    "0",
    "999",
    "1,536",
    "131,072",
    "1,234,567",
  ]);
});

it("says how many tokens", () => {
  expect([0, 1, 2, 1536].map(tokens)).toEqual(["0 tokens", "1 token", "2 tokens", "1,536 tokens"]);
});

it("says a rate with the digits that it deserves", () => {
  expect([0, 8.26, 9.94, 9.96, 23.4, 1276.6].map(rate)).toEqual([
    "0.0 tokens/s",
    "8.3 tokens/s",
    "9.9 tokens/s",
    "10 tokens/s",
    "23 tokens/s",
    "1,277 tokens/s",
  ]);
});

it("does not call a short wait none", () => {
  expect([0, 99, 100, 312, 9949, 9950, 1_200_000].map(wait)).toEqual([
    "under 0.1 s",
    "under 0.1 s",
    "0.1 s",
    "0.3 s",
    "9.9 s",
    "10 s",
    "1,200 s",
  ]);
});

it("says sizes in the unit that fits", () => {
  expect([0.2, 4.6, 120.4, 999, 1000, 1915].map((megabytes) => size(megabytes * 1e6))).toEqual([
    "0.2 MB",
    "4.6 MB",
    "120 MB",
    "999 MB",
    "1.0 GB",
    "1.9 GB",
  ]);
});

it("says what is left of a wait no more exactly than it is known", () => {
  expect([3, 12, 40, 58, 200, 3570, 3600, 4320].map(timeLeft)).toEqual([
    "a few seconds",
    "10 s",
    "40 s",
    "1 min",
    "3 min",
    "1 h",
    "1 h",
    "1 h 12 min",
  ]);
});
