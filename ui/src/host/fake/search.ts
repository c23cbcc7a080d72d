import { matches, places, terms, type Term } from "../../text/query";
import type { ChatHits, SearchAnswer, SearchHit } from "../host";
import type { FakeChat } from "./library";

/** Of each chat these are listed; the others are asked for. */
const FIRST_HITS = 3;

/** What has all words of the query, as the store finds it: by their titles first, then the latest. */
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

/** The messages of a chat that have all words of the query, the latest first. */
export function findIn({ messages }: FakeChat, query: string): SearchHit[] {
  const wanted = terms(query);
  return messages
    .filter(({ text, thinking }) => matches(`${text} ${thinking ?? ""}`, wanted))
    .map(({ id, role, text, thinking, createdAt }) => {
      const inThinking = places(text, wanted).length === 0;
      const snippet = excerpt(inThinking ? (thinking ?? "") : text, wanted);
      return { message: id, role, inThinking, snippet, at: createdAt };
    })
    .reverse();
}

/** The text around the first place of the terms, with all of them marked. */
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
