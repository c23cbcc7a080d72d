import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../host/host";
import { answerParts } from "../host/parts";
import { Entry } from "./entry.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** An answer with two seconds of thinking so far. */
const thought: Message = {
  id: 1,
  parent: null,
  role: "assistant",
  parts: answerParts("Hm", ""),
  thinkingMs: 2000,
  thinks: true,
  length: null,
  guide: null,
  state: "writing",
  stats: null,
  error: null,
  omitted: null,
  readFrom: null,
  createdAt: 0,
  siblings: [1],
  seq: 3,
};
const delta = { tokens: 5, tokensPerSecond: 1 };

test("the time of thinking goes on after its chat was left and opened again", async () => {
  const entry = new Entry(thought);
  expect(entry.pondering).toBe(true);
  expect(entry.append({ ...delta, seq: 4, parts: answerParts(" and", "") })).toBe(true);
  expect(entry.thinkingMs).toBeNull();
  expect(entry.thinkingSince).toBe(Date.now() - 2000);
  await vi.advanceTimersByTimeAsync(1100);
  expect(entry.append({ ...delta, seq: 5, parts: answerParts("", "So") })).toBe(true);
  expect(entry.thinkingMs).toBe(3100);
});

test("the pace while writing is that of the last delta", () => {
  const entry = new Entry(thought);
  entry.append({ ...delta, seq: 4, parts: answerParts("", "So") });
  entry.append({ seq: 5, parts: answerParts("", " it"), tokens: 7, tokensPerSecond: 2.5 });
  expect(entry.pace).toEqual({ tokens: 7, perSecond: 2.5 });
});

test("the time between Stop and Continue is not spent thinking", async () => {
  const entry = new Entry(thought);
  await vi.advanceTimersByTimeAsync(500);
  entry.absorb({ ...thought, state: "stopped", thinkingMs: 2500 });
  expect(entry.thinkingMs).toBe(2500);
  await vi.advanceTimersByTimeAsync(60_000);
  entry.absorb({ ...thought, thinkingMs: 2500 });
  await vi.advanceTimersByTimeAsync(500);
  entry.append({ ...delta, seq: 4, parts: answerParts("", "So") });
  expect(entry.thinkingMs).toBe(3000);
});
