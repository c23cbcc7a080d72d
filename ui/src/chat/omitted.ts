import { count } from "../text/figures";

/**
 * Omitted parts of a prompt, as the object of a negated sentence ("It won't see …"); null if
 * nothing was omitted.
 */
export function leftOut({
  messages,
  thinking,
}: {
  messages: number;
  thinking: number;
}): string | null {
  const parts: string[] = [];
  if (messages > 0)
    parts.push(messages === 1 ? "the first message" : `the first ${count(messages)} messages`);
  if (thinking > 0) parts.push("earlier thinking");
  return parts.length > 0 ? parts.join(" or ") : null;
}
