import type { FailureCode } from "../host/host";

/** What the window offers after a failure, beside its sentence. */
export type Remedy =
  "open-again" | "find-file" | "open-another" | "shorten" | "more-context" | "make-room";

/** The one place that acts on the code of a failure. */
export function remedy(code: FailureCode): Remedy | null {
  switch (code) {
    case "crashed":
      return "open-again";
    case "missing-model":
      return "find-file";
    case "bad-model":
      return "open-another";
    case "too-long":
      return "shorten";
    case "answer-full":
      return "more-context";
    case "disk-full":
      return "make-room";
    case "store":
    case "other":
      return null;
    default:
      return code satisfies never;
  }
}
