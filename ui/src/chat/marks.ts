import { BREAK, BREAKING } from "../text/shown";

/** Limit of highlights in one text. */
export const MOST = 500;
/**
 * Time for which the scroll position is corrected after the match has been rendered, since the
 * layout may still change.
 */
export const SETTLING_MS = 1500;
/** Time limit for rendering the match. */
const TIMEOUT_MS = 20_000;

/** Block elements, across which no match extends. */
const BLOCKS = BREAKING.join(", ");

/**
 * Sets the ranges of a highlight in `answer.css`. The highest rank is painted on top. Does nothing
 * in web views without the Highlight API.
 */
export function paint(name: string, ranges: AbstractRange[], rank = 0): void {
  if (!("highlights" in CSS)) return;
  if (ranges.length === 0) {
    CSS.highlights.delete(name);
    return;
  }
  const highlight = new Highlight(...ranges);
  highlight.priority = rank;
  CSS.highlights.set(name, highlight);
}

/**
 * Ranges of the matches that `places` finds in the text of these elements, except in `skipped`
 * ones. They are static, because each live range slows down every change of the DOM.
 */
export function rangesIn(
  parts: Iterable<Element>,
  skipped: string,
  places: (text: string) => [from: number, to: number][],
  first = 0,
  end = first + MOST,
): StaticRange[] {
  const nodes: { node: Text; from: number }[] = [];
  let text = "";
  for (const part of parts) {
    const walk = document.createTreeWalker(
      part,
      NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT,
      (node) =>
        node instanceof Text
          ? NodeFilter.FILTER_ACCEPT
          : (node as Element).matches(skipped)
            ? NodeFilter.FILTER_REJECT
            : NodeFilter.FILTER_SKIP,
    );
    let block: Element | null = null;
    while (walk.nextNode()) {
      const node = walk.currentNode as Text;
      const its = node.parentElement?.closest(BLOCKS) ?? part;
      if (its !== block) text += BREAK;
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
  return places(text)
    .slice(first, end)
    .flatMap(([from, to]) => {
      const start = place(from, false);
      const end = place(to, true);
      if (!start || !end) return [];
      const [startContainer, startOffset] = start;
      const [endContainer, endOffset] = end;
      return [new StaticRange({ startContainer, startOffset, endContainer, endOffset })];
    });
}

/**
 * Converts to a live range, which has a position on screen. The text may have changed meanwhile.
 */
export function live({ startContainer, startOffset, endContainer, endOffset }: StaticRange): Range {
  const range = document.createRange();
  range.setStart(startContainer, Math.min(startOffset, startContainer.textContent?.length ?? 0));
  range.setEnd(endContainer, Math.min(endOffset, endContainer.textContent?.length ?? 0));
  return range;
}

type View = {
  /** Range to show; undefined until it is rendered. */
  range: () => Range | undefined;
  signal: AbortSignal;
  /** Runs when the range is first rendered. */
  onseen?: () => void;
  /** Runs after each scroll to the range. */
  onshown?: () => void;
  /** Runs when the user scrolls, clicks or types. */
  onmoved?: () => void;
};

/** Scrolls to a range and keeps it in view until the layout settles or the user scrolls. */
export function keepInView({ range, signal, onseen, onshown, onmoved }: View): void {
  let end = performance.now() + TIMEOUT_MS;
  let isSeen = false;
  let isMoved = false;
  const over = new AbortController();
  for (const event of ["wheel", "pointerdown", "keydown", "touchmove"]) {
    const listen = { signal: AbortSignal.any([signal, over.signal]), capture: true, passive: true };
    window.addEventListener(event, () => ((isMoved = true), onmoved?.()), listen);
  }
  const settle = (): void => {
    if (signal.aborted) return;
    const first = range();
    if (first && !isSeen) {
      isSeen = true;
      end = performance.now() + SETTLING_MS;
      onseen?.();
    }
    if (first && !isMoved) {
      show(first);
      onshown?.();
    }
    if (performance.now() < end && !(isSeen && isMoved)) requestAnimationFrame(settle);
    else over.abort();
  };
  requestAnimationFrame(settle);
}

/** Scrolls a match to the middle of the log, unless it is comfortably in view. */
function show(range: Range): void {
  const element = range.startContainer.parentElement;
  const log = element?.closest<HTMLElement>("[role=log]");
  if (!element || !log) return;
  // An element far from the viewport has no layout yet.
  const isDrawn = range.getClientRects().length > 0;
  if (!isDrawn) element.scrollIntoView({ block: "center" });
  showAcross(range, element);
  const { top, bottom } = range.getBoundingClientRect();
  const view = log.getBoundingClientRect();
  const margin = view.height / 5;
  if (top >= view.top + margin && bottom <= view.bottom - margin) return;
  log.scrollTop += (top + bottom) / 2 - (view.top + view.bottom) / 2;
}

/** Scrolls horizontally in a wide table or a line of code. */
function showAcross(range: Range, element: Element): void {
  const wide = element.closest("pre, .table, .formula");
  if (!wide || wide.scrollWidth <= wide.clientWidth) return;
  const { left, right } = range.getBoundingClientRect();
  const view = wide.getBoundingClientRect();
  if (left >= view.left && right <= view.right) return;
  wide.scrollLeft += (left + right) / 2 - (view.left + view.right) / 2;
}
