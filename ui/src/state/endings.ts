import type { Message } from "../host/host";
import { isToolPart, textOf, thinkingOf } from "../host/parts";

/** Note on how a message ended, or null if it ended normally. */
export function endWords(message: Pick<Message, "state" | "parts" | "stats">): string | null {
  switch (message.state) {
    case "interrupted":
      return "Goldcrest closed before this answer was finished.";
    case "stopped":
      return "Stopped.";
    case "limit":
      return message.stats?.repeated
        ? "Stopped: it was repeating itself."
        : "The answer reached its length limit.";
    case "failed":
      return "The answer failed.";
    case "done":
      return thinkingOf(message) !== "" &&
        textOf(message).trim() === "" &&
        !message.parts.some(isToolPart)
        ? "The model thought, but wrote no answer."
        : null;
    case "writing":
      return null;
  }
}
