import type { SearchHit } from "../host/host";
import { places, terms } from "../text/query";
import { type Part, parts, partsAt } from "../text/snippet";

/** One place in a chat, and when it was written; without parts the title alone matches. */
export type HitLine = { message: number | null; at: number; inThinking: boolean; parts: Part[] };

export type HitGroup = { chat: number; title: Part[]; at: number; lines: HitLine[] };

/** Hits by their chats, in the order in which a chat comes first. What a title says is not said again. */
export function groupHits(hits: SearchHit[], query: string): HitGroup[] {
  const wanted = terms(query);
  const groups = new Map<number, HitGroup>();
  for (const { chat, title, message, inThinking, snippet, at } of hits) {
    const known = groups.get(chat);
    const group = known ?? { chat, title: partsAt(title, places(title, wanted)), at, lines: [] };
    if (!known) groups.set(chat, group);
    const found = message === null ? [] : parts(snippet, !inThinking);
    const repeats = message === null || sameWords(found, title);
    const titleLine = group.lines.find((line) => line.parts.length === 0);
    if (repeats && titleLine) titleLine.message ??= message;
    else if (repeats) group.lines.unshift({ message, at, inThinking: false, parts: [] });
    else group.lines.push({ message, at, inThinking, parts: found });
  }
  return [...groups.values()];
}

function sameWords(found: Part[], title: string): boolean {
  const words = found.map(({ text }) => text).join("");
  return title.includes(words.replaceAll("…", "").trim());
}
