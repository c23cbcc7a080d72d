import { count } from "../text/figures";

/** What was left out of a prompt, in words that go on a sentence with "not"; null where nothing was. */
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
