import { expect, test } from "vitest";
import type { AnswerStats } from "../host/host";
import { stats } from "../host/fake/library";
import { rereadBy, rereadWhole, rereadWords } from "./reread";

const answer = (thinks: boolean, figures: Partial<AnswerStats> = {}) => ({
  role: "assistant",
  thinks,
  stats: { ...stats, model: "m", ...figures },
});
const long = { promptTokens: 8000, cachedTokens: 0, tokens: 200, thinkingTokens: 100 };

test("switching the mode has the chat read again, as fast as it was read last", () => {
  const entries = [answer(true, { ...long, readPerSecond: 100 })];
  expect(rereadBy(entries, false, "m")).toEqual({ tokens: 8100, seconds: 81 });
  expect(rereadBy([answer(false, { ...long, readPerSecond: 100 })], true, "m")).toEqual({
    tokens: 8200,
    seconds: 82,
  });
});

test("in the same mode, and in a new chat, nothing is read again", () => {
  expect(rereadBy([answer(true, long)], true, "m")).toBeNull();
  expect(rereadBy([], true, "m")).toBeNull();
  expect(rereadBy([{ role: "assistant", thinks: true, stats: null }], false, "m")).toBeNull();
});

test("a wait that nobody notices is not mentioned", () => {
  expect(rereadBy([answer(true, { ...long, readPerSecond: 9000 })], false, "m")).toBeNull();
});

test("without a measured rate of this model there is no figure", () => {
  const unknown = { tokens: 8100, seconds: null };
  expect(rereadBy([answer(true, { ...long, model: "other" })], false, "m")).toEqual(unknown);
  expect(rereadBy([answer(true, { ...long, cachedTokens: 7990 })], false, "m")).toEqual(unknown);
  const before = answer(true, { ...long, cachedTokens: 0, readPerSecond: 50 });
  const after = answer(true, { ...long, cachedTokens: 7990, readPerSecond: 5 });
  expect(rereadBy([before, after], false, "m")).toEqual({ tokens: 8100, seconds: 162 });
});

test("other instructions have the whole chat read again, in whichever mode", () => {
  const entries = [answer(true, { ...long, readPerSecond: 100 })];
  expect(rereadWhole(entries, true, "m")?.tokens).toBeGreaterThan(8100);
  expect(rereadWhole(entries, false, "m")).toEqual({ tokens: 8100, seconds: 81 });
  expect(rereadWhole([], false, "m")).toBeNull();
  expect(rereadWords({ tokens: 8100, seconds: null })).toBe(
    "the model rereads this chat first: 8,100 tokens.",
  );
});
