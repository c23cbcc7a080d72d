import type { ChatHits, PartKind, SearchAnswer } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import { type Part, parts } from "../text/snippet";

/**
 * A match in a chat, the time of its message, and the kind of the part that matches; without parts
 * only the title matches.
 */
export type HitLine = { message: number | null; at: number; kind: PartKind; parts: Part[] };

/** A chat with matches. `more`: number of matching messages that are not among its lines. */
export type HitGroup = { chat: number; title: Part[]; at: number; lines: HitLine[]; more: number };

/** Groups the matches in a chat, without a line that would only repeat its title. */
export function hitGroup({ chat, title, inTitle, at, hits, count }: ChatHits): HitGroup {
  const titleParts = parts(withoutBidiControls(title), false);
  const inWords = words(titleParts);
  const titleLine: HitLine = { message: null, at, kind: "text", parts: [] };
  const lines: HitLine[] = [];
  let repeated = false;
  for (const { message, role, at: said, kind, snippet } of hits) {
    const found = parts(snippet, role === "assistant" && kind === "text");
    if (inWords.includes(words(found).replaceAll("…", "").trim())) {
      repeated = true;
      titleLine.message ??= message;
    } else lines.push({ message, at: said, kind, parts: found });
  }
  if (inTitle || repeated) lines.unshift(titleLine);
  return { chat, title: titleParts, at, lines, more: Math.max(0, count - hits.length) };
}

function words(found: Part[]): string {
  return found.map(({ text }) => text).join("");
}

/** Note on an incomplete result, or null if it is complete. */
export function noteOn({ chats, more, indexing }: SearchAnswer): string | null {
  if (indexing) return "Older messages are still being indexed. Search again in a few minutes.";
  if (more && chats.length > 0) return "More chats match. Type more to narrow the search.";
  return null;
}
