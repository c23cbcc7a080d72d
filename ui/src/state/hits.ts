import type { ChatHits, SearchAnswer } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import { type Part, parts } from "../text/snippet";

/** One place in a chat, and when it was written; without parts the title alone matches. */
export type HitLine = { message: number | null; at: number; inThinking: boolean; parts: Part[] };

/** A chat in which something was found. `more`: messages that are not among its lines. */
export type HitGroup = { chat: number; title: Part[]; at: number; lines: HitLine[]; more: number };

/** What was found in a chat. What its title says is not said again. */
export function hitGroup({ chat, title, inTitle, at, hits, count }: ChatHits): HitGroup {
  const titleParts = parts(withoutBidiControls(title), false);
  const inWords = words(titleParts);
  const titleLine: HitLine = { message: null, at, inThinking: false, parts: [] };
  const lines: HitLine[] = [];
  let repeated = false;
  for (const { message, role, at: said, inThinking, snippet } of hits) {
    const found = parts(snippet, role === "assistant" && !inThinking);
    if (inWords.includes(words(found).replaceAll("…", "").trim())) {
      repeated = true;
      titleLine.message ??= message;
    } else lines.push({ message, at: said, inThinking, parts: found });
  }
  if (inTitle || repeated) lines.unshift(titleLine);
  return { chat, title: titleParts, at, lines, more: Math.max(0, count - hits.length) };
}

function words(found: Part[]): string {
  return found.map(({ text }) => text).join("");
}

/** What is to be known of an answer that does not have all. */
export function noteOn({ chats, more, indexing }: SearchAnswer): string | null {
  if (indexing) return "Older messages are still being indexed. Search again in a few minutes.";
  if (more && chats.length > 0) return "More chats match. Type more to narrow the search.";
  return null;
}
