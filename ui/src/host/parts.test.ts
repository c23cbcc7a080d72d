import { expect, it } from "vitest";
import type { Part } from "./host";
import { answerParts, appended, textOf, textParts, thinkingOf } from "./parts";

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
