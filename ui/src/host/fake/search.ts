import { matches, places, terms, type Term } from "../../text/query";
import type { SearchHit } from "../host";
import type { FakeChat } from "./library";

/** What has all words of the query, as the store finds it: titles first, then messages, the latest first. */
export function find(chats: FakeChat[], query: string): SearchHit[] {
  const wanted = terms(query);
  const titles: SearchHit[] = [];
  const hits: SearchHit[] = [];
  for (const { summary, messages } of chats) {
    const { id: chat, title, updatedAt } = summary;
    if (matches(title, wanted)) {
      const snippet = excerpt(title, wanted);
      titles.push({ chat, title, message: null, inThinking: false, snippet, at: updatedAt });
    }
    for (const { id: message, text, thinking, createdAt: at } of messages) {
      if (!matches(`${text} ${thinking ?? ""}`, wanted)) continue;
      const inThinking = places(text, wanted).length === 0;
      const snippet = excerpt(inThinking ? (thinking ?? "") : text, wanted);
      hits.push({ chat, title, message, inThinking, snippet, at });
    }
  }
  return [...titles.reverse(), ...hits.reverse()];
}

/** The text around the first place of the terms, with all of them marked. */
function excerpt(text: string, wanted: Term[]): string {
  const found = places(text, wanted);
  const from = Math.max(0, (found[0]?.[0] ?? 0) - 24);
  const end = (found[0]?.[1] ?? 0) + 60;
  let marked = "";
  let done = from;
  for (const [start, over] of found.filter((place) => place[1] <= end)) {
    marked += `${text.slice(done, start)}\uE000${text.slice(start, over)}\uE001`;
    done = over;
  }
  return `${from > 0 ? "…" : ""}${marked}${text.slice(done, end)}${end < text.length ? "…" : ""}`;
}
