import { expect, it } from "vitest";
import type { Part } from "./host";
import { answerParts, appended, joinedParts, paired, textOf, textParts, thinkingOf } from "./parts";

const call: Part = { kind: "tool-call", id: "1", name: "clock", arguments: "{}" };
const result: Part = { kind: "tool-result", id: "1", text: "Noon." };

it("a delta continues the last part only if it is of its kind", () => {
  const deltas = [
    answerParts("H", ""),
    answerParts("m.", "One mo"),
    textParts("ment."),
    [call],
    [result],
    textParts("It is"),
    textParts(" noon."),
  ];
  const parts = deltas.reduce(appended, []);
  expect(parts).toEqual([
    { kind: "thinking", text: "Hm." },
    { kind: "text", text: "One moment." },
    call,
    result,
    { kind: "text", text: "It is noon." },
  ]);
  expect(thinkingOf({ parts })).toBe("Hm.");
  expect(textOf({ parts })).toBe("One moment.\n\nIt is noon.");
});

it("a message without text has none", () => {
  expect(answerParts("", "")).toEqual([]);
  expect([textOf({ parts: [call] }), thinkingOf({ parts: [] }), textOf(undefined)]).toEqual([
    "",
    "",
    "",
  ]);
});

it("adjacent parts of a kind are shown as one, and empty ones are not", () => {
  const parts = [
    ...answerParts("Hm.", ""),
    ...answerParts("So.", ""),
    { kind: "text" as const, text: "" },
    ...textParts("One"),
    call,
    result,
    ...textParts("Two"),
    { kind: "thinking" as const, text: "" },
    ...textParts("three"),
  ];
  expect(joinedParts(parts)).toEqual([
    { kind: "thinking", text: "Hm.\n\nSo." },
    { kind: "text", text: "One" },
    call,
    result,
    { kind: "text", text: "Two\n\nthree" },
  ]);
});

it("parts that do not grow stay the same objects", () => {
  const parts = [...answerParts("Hm.", "One"), call];
  expect(joinedParts([...parts, result]).slice(0, 3)).toEqual(parts);
  for (const [at, part] of joinedParts([...parts, result])
    .slice(0, 3)
    .entries())
    expect(part).toBe(parts[at]);
});

it("moves results behind their calls, equal ids in their order", () => {
  const text: Part = { kind: "text", text: "Both." };
  const other: Part = { ...call, id: "2" };
  const otherResult: Part = { ...result, id: "2" } as Part;
  expect(paired([call, other, result, otherResult, text])).toEqual([
    ...[call, result, other, otherResult, text],
  ]);
  const again: Part = { ...result, text: "Midnight." } as Part;
  expect(paired([call, result, call, again])).toEqual([call, result, call, again]);
  expect(paired([result, call])).toEqual([result, call]);
});
