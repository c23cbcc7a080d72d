import type { MessageState } from "../host/host";

/** How a message ended, where it did not simply end. */
export function endWords(state: MessageState): string | null {
  switch (state) {
    case "interrupted":
      return "Goldcrest closed before this answer was finished.";
    case "stopped":
      return "Stopped.";
    case "limit":
      return "The answer reached its length limit.";
    case "failed":
      return "The answer failed.";
    case "writing":
    case "done":
      return null;
  }
}
