import type { Attachment } from "svelte/attachments";
import type { App } from "../state/app.svelte";
import { places, type Term } from "../text/query";
import { keepInView, live, paint, rangesIn, SETTLING_MS } from "./marks";

/** The names of the marks in `answer.css`, from the strongest to the faintest, and how long each stays. */
const FADING = [
  ["found", 4000],
  ["found-fading", 160],
  ["found-faint", 160],
] as const;

/** What of a message can be found. */
const TEXTS = ".answer, .bubble, .thoughts";
/** The button above code; its language is in the text of the message. */
const COPY = "figcaption button";

/** Where a search has led to this message: shows the first of the words and marks all of them for a while. */
export function found({ conversation, dialogOpen }: App, id: number): Attachment<HTMLElement> {
  return (article) => {
    if (conversation.sought !== id || conversation.soughtTerms.length === 0) return;
    // WebKit would paint words of the dialog in the place of those that it has made inert.
    if (dialogOpen) {
      conversation.soughtTerms = [];
      return;
    }
    // A message that leaves the view and comes back is not shown once more.
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
  /** From when the words were seen; a page that is busy drawing shows nothing. */
  const fade = (): void => {
    let at = 0;
    for (const [step, stays] of FADING) {
      timers.push(setTimeout(() => paintOnly((name = step), ranges), at));
      at += stays;
    }
    timers.push(setTimeout(leave, at), setTimeout(onseen, SETTLING_MS));
  };
  // A long message is drawn a piece at a time, and coloured later.
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

/** Marks these with the style of that name, and takes away all others. */
function paintOnly(name: string, ranges: Range[]): void {
  for (const [each] of FADING) paint(each, each === name ? ranges : []);
}
