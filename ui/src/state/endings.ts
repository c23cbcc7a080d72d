import type { Message } from "../host/host";

/** Note on how a message ended, or null if it ended normally. */
export function endWords({
  state,
  text,
  thinking,
  stats,
}: Pick<Message, "state" | "text" | "thinking" | "stats">): string | null {
  switch (state) {
    case "interrupted":
      return "Goldcrest closed before this answer was finished.";
    case "stopped":
      return "Stopped.";
    case "limit":
      return stats?.repeated
        ? "Stopped: it was repeating itself."
        : "The answer reached its length limit.";
    case "failed":
      return "The answer failed.";
    case "done":
      return thinking && text.trim() === "" ? "The model thought, but wrote no answer." : null;
    case "writing":
      return null;
  }
}
