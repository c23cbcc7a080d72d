import { expect, test } from "vitest";
import type { Message } from "../host/host";
import { stats } from "../host/fake/library";
import { answerParts } from "../host/parts";

const call = { kind: "tool-call", id: "1", name: "weigh", arguments: "{}" } as const;
import { endWords } from "./endings";

type Ended = Pick<Message, "state" | "parts"> & { repeated?: boolean };

test.each<[Ended, string | null]>([
  [{ state: "done", parts: answerParts("Hm.", "") }, "The model thought, but wrote no answer."],
  [{ state: "done", parts: answerParts("Hm.", "\n") }, "The model thought, but wrote no answer."],
  [{ state: "done", parts: answerParts("Hm.", "So.") }, null],
  [{ state: "done", parts: [...answerParts("Hm.", ""), call] }, null],
  [{ state: "done", parts: [{ kind: "tool-result", id: "1", text: "9 g" }] }, null],
  [{ state: "done", parts: answerParts("", "So.") }, null],
  [{ state: "done", parts: answerParts("", "") }, null],
  [{ state: "writing", parts: answerParts("Hm.", "") }, null],
  [{ state: "stopped", parts: answerParts("Hm.", "") }, "Stopped."],
  [{ state: "limit", parts: answerParts("Hm.", "") }, "The answer reached its length limit."],
  [
    { state: "limit", parts: answerParts("", "Ha. Ha."), repeated: true },
    "Stopped: it was repeating itself.",
  ],
])("%j ended so: %s", ({ repeated = false, ...message }, words) =>
  expect(endWords({ ...message, stats: { ...stats, repeated } })).toBe(words),
);
