import { matches, places, terms, type Term } from "../../text/query";
import { textsOf } from "../../text/shown";
import type { ChatHits, SearchAnswer, SearchHit } from "../host";
import type { FakeChat } from "./library";

/** Limit of hits per chat in the first result. */
const FIRST_HITS = 3;

/**
 * Chats that match all words of the query, ordered as in the store: matches in the title first,
 * then newest first.
 */
export function find(chats: FakeChat[], query: string): SearchAnswer {
  const wanted = terms(query);
  const found: ChatHits[] = [];
  for (const chat of chats) {
    const { id, title, updatedAt } = chat.summary;
    const hits = findIn(chat, query);
    const inTitle = matches(title, wanted);
    if (!inTitle && hits.length === 0) continue;
    found.push({
      chat: id,
      title: marked(title, places(title, wanted)),
      inTitle,
      at: hits[0]?.at ?? updatedAt,
      hits: hits.slice(0, FIRST_HITS),
      count: hits.length,
    });
  }
  found.reverse().sort((one, other) => Number(other.inTitle) - Number(one.inTitle));
  return { chats: found, more: false, indexing: false };
}

/** Messages of a chat that match all words of the query, newest first. */
export function findIn({ messages }: FakeChat, query: string): SearchHit[] {
  const wanted = terms(query);
  return messages
    .flatMap(({ id, role, parts, createdAt }) => {
      const texts = parts.map((part) => {
        const { name, content } = textsOf(part);
        return { kind: part.kind, text: `${name} ${content}`.trimStart() };
      });
      const found = texts.filter(({ text }) => places(text, wanted).length > 0);
      const best = found.find(({ kind }) => kind === "text") ?? found[0];
      if (!best || !matches(texts.map(({ text }) => text).join(" "), wanted)) return [];
      const snippet = excerpt(best.text, wanted);
      return [{ message: id, role, kind: best.kind, snippet, at: createdAt }];
    })
    .reverse();
}

/** Text around the first match, with all matches marked. */
function excerpt(text: string, wanted: Term[]): string {
  const found = places(text, wanted);
  const from = Math.max(0, (found[0]?.[0] ?? 0) - 24);
  const end = (found[0]?.[1] ?? 0) + 60;
  const near = found.filter((place) => place[1] <= end);
  return `${from > 0 ? "…" : ""}${marked(text.slice(0, end), near, from)}${end < text.length ? "…" : ""}`;
}

function marked(text: string, found: [from: number, to: number][], from = 0): string {
  let out = "";
  let done = from;
  for (const [start, over] of found) {
    out += `${text.slice(done, start)}\uE000${text.slice(start, over)}\uE001`;
    done = over;
  }
  return out + text.slice(done);
}
