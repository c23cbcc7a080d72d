import type { Attachment } from "svelte/attachments";
import type { Conversation } from "../state/conversation.svelte";
import { places, type Term } from "../text/query";

/** The names of the marks in `answer.css`, from the strongest to the faintest, and how long each stays. */
const FADING = [
  ["found", 4000],
  ["found-fading", 160],
  ["found-faint", 160],
] as const;
/** More marks than these help nobody. */
const MOST = 500;
/** So long, the view may move by itself once the words are there, and they may be still to come. */
const SETTLING_MS = 1500;
const PATIENCE_MS = 20_000;

/** What of a message can be found. */
const TEXTS = ".answer, .bubble, .thoughts";
/** Words in two of these do not stand together. */
const BLOCKS = "p, li, td, th, h3, h4, h5, h6, pre, .piece, .bubble";

/** Where a search has led to this message: shows the first of the words and marks all of them for a while. */
export function found(conversation: Conversation, id: number): Attachment<HTMLElement> {
  return (article) => {
    if (conversation.sought !== id || conversation.soughtTerms.length === 0) return;
    // A message that leaves the view and comes back is not led to once more.
    return mark(article, conversation.soughtTerms, () => (conversation.soughtTerms = []));
  };
}

function mark(article: HTMLElement, terms: Term[], onseen: () => void): () => void {
  const over = new AbortController();
  const { signal } = over;
  const timers: ReturnType<typeof setTimeout>[] = [];
  let ranges: Range[] = [];
  let name: string = FADING[0][0];
  /** Until then the first word is kept in view: from its first frame, for as long as the view may move by itself. */
  let end = performance.now() + PATIENCE_MS;
  let isSeen = false;
  let isMoved = false;

  const look = (): void => {
    ranges = rangesIn(article, terms);
    paint(name, ranges);
  };
  /** From when the words were seen; a page that is busy drawing shows nothing. */
  const fade = (): void => {
    let at = 0;
    for (const [step, stays] of FADING) {
      timers.push(setTimeout(() => paint((name = step), ranges), at));
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
  for (const event of ["wheel", "pointerdown", "keydown", "touchmove"]) {
    const listen = { signal, capture: true, passive: true };
    window.addEventListener(event, () => ((isMoved = true), onseen()), listen);
  }
  const settle = (): void => {
    if (signal.aborted) return;
    const [first] = ranges;
    if (first && !isSeen) {
      isSeen = true;
      end = performance.now() + SETTLING_MS;
      fade();
    }
    if (first && !isMoved) show(first);
    if (performance.now() < end && !(isSeen && isMoved)) requestAnimationFrame(settle);
  };
  const leave = (): void => {
    over.abort();
    changes.disconnect();
    cancelAnimationFrame(due);
    for (const timer of timers) clearTimeout(timer);
    paint("", []);
  };
  look();
  requestAnimationFrame(settle);
  return leave;
}

/** Marks these with the style of that name, and takes away all others. Older web views mark nothing. */
function paint(name: string, ranges: Range[]): void {
  if (!("highlights" in CSS)) return;
  for (const [each] of FADING) {
    if (each === name && ranges.length > 0) CSS.highlights.set(each, new Highlight(...ranges));
    else CSS.highlights.delete(each);
  }
}

function rangesIn(article: HTMLElement, terms: Term[]): Range[] {
  const nodes: { node: Text; from: number }[] = [];
  let text = "";
  for (const part of article.querySelectorAll(TEXTS)) {
    const walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    let block: Element | null = null;
    while (walk.nextNode()) {
      const node = walk.currentNode as Text;
      const its = node.parentElement?.closest(BLOCKS) ?? part;
      if (its !== block) text += "\n";
      block = its;
      nodes.push({ node, from: text.length });
      text += node.data;
    }
  }
  let at = 0;
  const place = (offset: number, isEnd: boolean): [Text, number] | null => {
    const edge = isEnd ? offset - 1 : offset;
    while (at + 1 < nodes.length && (nodes[at + 1]?.from ?? 0) <= edge) at += 1;
    const found = nodes[at];
    return found ? [found.node, Math.min(offset - found.from, found.node.length)] : null;
  };
  return places(text, terms)
    .slice(0, MOST)
    .flatMap(([from, to]) => {
      const start = place(from, false);
      const end = place(to, true);
      if (!start || !end) return [];
      const range = document.createRange();
      range.setStart(...start);
      range.setEnd(...end);
      return [range];
    });
}

/** Brings a word into the middle of the log, unless it is well in view already. */
function show(range: Range): void {
  const element = range.startContainer.parentElement;
  const log = element?.closest<HTMLElement>("[role=log]");
  if (!element || !log) return;
  // A wide table or a line of code scrolls to the side; what is far from the view has no place yet.
  const isDrawn = range.getClientRects().length > 0;
  if (!isDrawn) element.scrollIntoView({ block: "center" });
  const { top, bottom } = range.getBoundingClientRect();
  const view = log.getBoundingClientRect();
  const margin = view.height / 5;
  if (top >= view.top + margin && bottom <= view.bottom - margin) return;
  log.scrollTop += (top + bottom) / 2 - (view.top + view.bottom) / 2;
}
