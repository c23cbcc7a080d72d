import { expect, test } from "vitest";
import { Entry } from "../state/entry.svelte";
import { likelyHeight, turnsOf } from "./turns";

function entry(id: number, role: "user" | "assistant", text: string): Entry {
  return new Entry({
    id,
    parent: null,
    role,
    parts: [{ kind: "text", text }],
    thinkingMs: null,
    thinks: false,
    length: null,
    guide: null,
    state: "done",
    stats: null,
    error: null,
    omitted: null,
    readFrom: null,
    siblings: [id],
    seq: 0,
    calls: [],
    createdAt: 0,
  });
}

test("a turn is a question with what follows it, or answers without one", () => {
  const roles = ["assistant", "user", "assistant", "assistant", "user"] as const;
  const turns = turnsOf(roles.map((role, at) => entry(at + 1, role, "x")));
  expect(turns.map(({ id, before, entries }) => [id, before, entries.length])).toEqual([
    [1, 0, 1],
    [2, 1, 3],
    [5, 4, 1],
  ]);
});

test("a long question is folded, a long answer is as high as it is long", () => {
  const height = (role: "user" | "assistant", width = 800): number => {
    const [turn] = turnsOf([entry(1, role, "word ".repeat(20_000))]);
    return turn ? likelyHeight(turn, width) : 0;
  };
  expect(height("user")).toBeLessThan(500);
  expect(height("assistant")).toBeGreaterThan(20_000);
  expect(height("assistant", 400)).toBeGreaterThan(1.5 * height("assistant"));
});
