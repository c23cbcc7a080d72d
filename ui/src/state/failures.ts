import type { FailureCode } from "../host/host";

/** Action that the window offers next to an error message. */
export type Remedy =
  "open-again" | "find-file" | "open-another" | "shorten" | "more-context" | "make-room";

/** Maps the code of a failure to its action, in this place alone. */
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
    case "no-model":
    case "bad-form":
    case "other":
      return null;
    default:
      return code satisfies never;
  }
}
