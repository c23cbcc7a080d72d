import type { Attachment } from "svelte/attachments";
import type { App } from "../state/app.svelte";
import { places, type Term } from "../text/query";
import { keepInView, live, paint, rangesIn, SETTLING_MS } from "./marks";

/**
 * Highlight names in `answer.css`, from strongest to faintest, and their durations in milliseconds.
 */
const FADING = [
  ["found", 4000],
  ["found-fading", 160],
  ["found-faint", 160],
] as const;

/** Searchable elements of a message. */
const TEXTS = ".answer, .bubble, .thoughts, .tool-name, .tool-text, .tool-whole";
/** Copy button above code, whose language name is not part of the message. */
const COPY = "figcaption button";

/**
 * Scrolls to the first search term in the message that a search led to, and highlights all of them
 * for a while.
 */
export function found({ conversation, dialogOpen }: App, id: number): Attachment<HTMLElement> {
  return (article) => {
    if (conversation.sought !== id || conversation.soughtTerms.length === 0) return;
    // WebKit would paint the dialog's text with highlights of the inert page.
    if (dialogOpen) {
      conversation.soughtTerms = [];
      return;
    }
    // Not repeated when the message is rendered again after scrolling.
    return mark(article, conversation.soughtTerms, () => (conversation.soughtTerms = []));
  };
}

function mark(article: HTMLElement, terms: Term[], onseen: () => void): () => void {
  const over = new AbortController();
  const { signal } = over;
  const timers: ReturnType<typeof setTimeout>[] = [];
  let ranges: Range[] = [];
  let name: string = FADING[0][0];

  const look = (): void => {
    ranges = rangesIn(article.querySelectorAll(TEXTS), COPY, (text) => places(text, terms)).map(
      live,
    );
    paintOnly(name, ranges);
  };
  /**
   * Starts the fade once the highlights are visible: a page that is busy rendering shows nothing.
   */
  const fade = (): void => {
    let at = 0;
    for (const [step, stays] of FADING) {
      timers.push(setTimeout(() => paintOnly((name = step), ranges), at));
      at += stays;
    }
    timers.push(setTimeout(leave, at), setTimeout(onseen, SETTLING_MS));
  };
  // A long message is rendered in pieces, and coloured later.
  let due = 0;
  const changes = new MutationObserver(() => {
    due ||= requestAnimationFrame(() => {
      due = 0;
      look();
    });
  });
  changes.observe(article, { childList: true, subtree: true, characterData: true });
  const leave = (): void => {
    over.abort();
    changes.disconnect();
    cancelAnimationFrame(due);
    for (const timer of timers) clearTimeout(timer);
    paintOnly("", []);
  };
  look();
  keepInView({ range: () => ranges[0], signal, onseen: fade, onmoved: onseen });
  return leave;
}

/** Sets these ranges as the only highlights of this kind. */
function paintOnly(name: string, ranges: Range[]): void {
  for (const [each] of FADING) paint(each, each === name ? ranges : []);
}
