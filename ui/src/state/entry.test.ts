import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message, Part } from "../host/host";
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
  calls: [],
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

const call: Part = { kind: "tool-call", id: "1", name: "weigh", arguments: "{}" };
const result: Part = { kind: "tool-result", id: "1", text: "9 g" };

test("the clock runs during all thinking, and only then", async () => {
  const entry = new Entry(thought);
  await vi.advanceTimersByTimeAsync(500);
  entry.append({ ...delta, seq: 4, parts: [call] });
  expect([entry.thinkingMs, entry.pondering]).toEqual([2500, false]);
  await vi.advanceTimersByTimeAsync(60_000);
  entry.append({ ...delta, seq: 5, parts: [result] });
  entry.enter({ name: "thinking" });
  await vi.advanceTimersByTimeAsync(1000);
  entry.append({ ...delta, seq: 6, parts: answerParts("So", "") });
  expect(entry.thinkingMs).toBeNull();
  expect(entry.thinkingSince).toBe(Date.now() - 3500);
  await vi.advanceTimersByTimeAsync(1000);
  entry.append({ ...delta, seq: 7, parts: answerParts("", "Nine.") });
  await vi.advanceTimersByTimeAsync(1000);
  entry.append({ ...delta, seq: 8, parts: answerParts("", " Done.") });
  expect([entry.thinkingMs, entry.thinkingSince]).toEqual([4500, null]);
});

test("a chat that is opened again during the second thinking shows its clock", async () => {
  const parts = [...answerParts("Hm", "Look."), call, result, ...answerParts("So", "")];
  const entry = new Entry({ ...thought, parts });
  expect(entry.pondering).toBe(true);
  expect(entry.thinkingSince).toBe(Date.now() - 2000);
  entry.absorb({ ...thought, parts: parts.slice(0, -1) });
  expect([entry.pondering, entry.stage.name, entry.thinkingMs]).toEqual([false, "waiting", 2000]);
});

test("parts are shown in their order, and thinking before its first word", () => {
  const entry = new Entry({ ...thought, parts: [] });
  const kinds = (): string[] => entry.shownParts.map(({ kind }) => kind);
  entry.enter({ name: "thinking" });
  expect(kinds()).toEqual(["thinking"]);
  entry.append({ ...delta, seq: 4, parts: [...answerParts("Hm", "Look."), call] });
  expect(kinds()).toEqual(["thinking", "text", "tool-call"]);
  entry.append({ ...delta, seq: 5, parts: [result] });
  entry.enter({ name: "thinking" });
  expect(kinds()).toEqual(["thinking", "text", "tool-call", "tool-result", "thinking"]);
  entry.append({ ...delta, seq: 6, parts: answerParts("", "Nine.") });
  expect(kinds()).toEqual(["thinking", "text", "tool-call", "tool-result", "text"]);
});

test("each part is folded by itself, and stays so while the message grows", () => {
  const entry = new Entry({ ...thought, parts: [...answerParts("Hm", ""), call, result] });
  entry.turnFold(1);
  entry.append({ ...delta, seq: 4, parts: answerParts("", "Nine.") });
  entry.absorb({ ...thought, state: "done", parts: entry.parts });
  expect([0, 1, 2].map((place) => entry.isUnfolded(place))).toEqual([false, true, false]);
});

test.each(["system", "user", "tool"] as const)("a %s message cannot be continued", (role) => {
  const entry = new Entry({ ...thought, role, state: "done", parts: [result] });
  expect([entry.canGoOn, entry.noun]).toEqual([false, "message"]);
});

test("an unfolded call stays unfolded when a result moves it", () => {
  const other: Part = { ...call, id: "2" };
  const entry = new Entry({ ...thought, parts: [call, other] });
  entry.turnFold(1);
  entry.absorb({ ...thought, parts: [call, other, result] });
  expect(entry.shownParts).toEqual([call, result, other]);
  expect([0, 1, 2].filter((place) => entry.isUnfolded(place))).toEqual([2]);
});

test("the clock of a call that runs goes on", () => {
  const tool = {
    ...{ name: "weigh", title: "Scales", description: "", source: { kind: "built-in" as const } },
    effects: { readsChats: false, readsFiles: false, changes: false, network: false },
  };
  const asks = { id: "1", status: "asks" as const, tool, asksBecause: null };
  const entry = new Entry({ ...thought, parts: [call], calls: [asks] });
  expect([entry.asking, entry.callSince("1")]).toEqual([asks, null]);
  const runs = { ...asks, status: "runs" as const };
  entry.absorb({ ...thought, parts: [call], calls: [runs] });
  const since = entry.callSince("1");
  vi.advanceTimersByTime(3000);
  entry.absorb({ ...thought, parts: [call], calls: [runs] });
  expect([entry.callSince("1"), since]).toEqual([since, Date.now() - 3000]);
  entry.absorb({ ...thought, parts: [call, result] });
  expect([entry.isCalling, entry.callSince("1")]).toEqual([false, null]);
});
