import { expect, test } from "vitest";
import type { Message } from "../host/host";
import { stats } from "../host/fake/library";
import { endWords } from "./endings";

type Ended = Pick<Message, "state" | "text" | "thinking"> & { repeated?: boolean };

test.each<[Ended, string | null]>([
  [{ state: "done", text: "", thinking: "Hm." }, "The model thought, but wrote no answer."],
  [{ state: "done", text: "\n", thinking: "Hm." }, "The model thought, but wrote no answer."],
  [{ state: "done", text: "So.", thinking: "Hm." }, null],
  [{ state: "done", text: "So.", thinking: null }, null],
  [{ state: "done", text: "", thinking: null }, null],
  [{ state: "writing", text: "", thinking: "Hm." }, null],
  [{ state: "stopped", text: "", thinking: "Hm." }, "Stopped."],
  [{ state: "limit", text: "", thinking: "Hm." }, "The answer reached its length limit."],
  [
    { state: "limit", text: "Ha. Ha.", thinking: null, repeated: true },
    "Stopped: it was repeating itself.",
  ],
])("%j ended so: %s", ({ repeated = false, ...message }, words) =>
  expect(endWords({ ...message, stats: { ...stats, repeated } })).toBe(words),
);
