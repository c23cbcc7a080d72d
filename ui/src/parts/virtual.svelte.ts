import { tick, untrack } from "svelte";
import type { Attachment } from "svelte/attachments";
import type { Follow } from "./follow.svelte";

/**
 * Minimum distance from the viewport within which items are rendered, in pixels and in viewport
 * heights.
 */
const MARGIN_PX = 800;
const MARGIN_VIEWS = 1;
/**
 * Portion of the items beyond the viewport that is rendered per frame, at each end: this height in
 * pixels, and at least one item.
 */
const PORTION_PX = 400;
/** Maximum number of selected items that stay rendered. */
const MOST_SELECTED = 200;

type Item = { readonly id: number };
/** Indices of items, without the one at `to`. */
type Range = { from: number; to: number };

/** A rendered item, and the height of the omitted items before it, in pixels. */
export type Drawn<T extends Item> = { item: T; before: number };

/** Scroll position: an item, and its offset from the top edge of the viewport, in pixels. */
export type Place = { id: number; offset: number };

/** Scroll position relative to an element. */
type Anchor = { element: Element; offset: number };

/**
 * Virtualises a long list: only items near the viewport are rendered, so the cost does not depend
 * on the length. The last item is always rendered, as are items with the focus or a selection, and
 * pinned ones. Gaps replace the omitted items, with their last measured or estimated height. If an
 * estimate was wrong, the visible content stays in place (scroll anchoring).
 */
export class VirtualList<T extends Item> {
  /** True while the end of the last item is below the viewport. */
  more = $state(false);
  /** Item at the top edge of the viewport. */
  place: Place | null = null;
  #range = $state.raw<Range>({ from: 0, to: 0 });
  #kept = $state.raw<ReadonlySet<number>>(new Set());
  #heights = new Map<number, number>();
  #elements = new Map<Element, number>();
  #anchor: Anchor | null = null;
  /** Scroll position at which the anchor was set, in pixels. */
  #top = 0;
  #scroller: HTMLElement | undefined;
  /** Width of the list in pixels; 0 before it is mounted. */
  #width = $state(0);
  #sizes: ResizeObserver | undefined;
  #frame = 0;

  constructor(
    private readonly items: () => readonly T[],
    /** Returns the estimated height of an item in a list of this width, in pixels. */
    private readonly likely: (item: T, width: number) => number,
    private readonly follow: Follow,
    /** Selector of the elements within an item that may serve as the scroll anchor. */
    private readonly anchors: string,
  ) {}

  readonly drawn = $derived.by(() => {
    const items = this.items();
    const { from, to } = this.#range;
    const kept = this.#kept;
    void this.#width;
    return untrack(() => {
      const drawn: Drawn<T>[] = [];
      let before = 0;
      for (const [at, item] of items.entries()) {
        if ((at >= from && at < to) || at === items.length - 1 || kept.has(item.id)) {
          drawn.push({ item, before });
          before = 0;
        } else before += this.#height(item);
      }
      return drawn;
    });
  });

  /** Attached to the scroller. */
  readonly attach: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    untrack(() => (this.#width = scroller.clientWidth));
    const abort = new AbortController();
    const { signal } = abort;
    scroller.addEventListener("scroll", () => this.settle(), { signal, passive: true });
    // The focus also moves when its element is being removed, and no state may change then.
    const keep = (): void => queueMicrotask(() => this.#keep());
    for (const name of ["focusin", "focusout"]) scroller.addEventListener(name, keep, { signal });
    document.addEventListener("selectionchange", keep, { signal });
    const sizes = new ResizeObserver(() => this.#resized());
    sizes.observe(scroller);
    return () => {
      sizes.disconnect();
      abort.abort();
      cancelAnimationFrame(this.#frame);
      this.#scroller = undefined;
    };
  };

  /** Attached to each rendered item. */
  item(id: number): Attachment<HTMLElement> {
    return (element) => {
      this.#sizes ??= new ResizeObserver(() => this.#grown());
      this.#sizes.observe(element);
      this.#elements.set(element, id);
      return () => {
        this.#sizes?.unobserve(element);
        this.#elements.delete(element);
      };
    };
  }

  /** Renders the end of the list, before any height is known. */
  showEnd(): void {
    untrack(() => {
      const items = this.items();
      let room = 2 * innerHeight;
      let from = items.length;
      while (from > 0 && room > 0) room -= this.#height(items[--from] as T);
      this.#anchor = null;
      this.#range = { from, to: items.length };
    });
  }

  /** Renders an item in order to scroll there. Its neighbours follow in later frames. */
  async show(id: number): Promise<void> {
    const at = untrack(() => this.items()).findIndex((item) => item.id === id);
    if (at < 0) return;
    this.#anchor = null;
    this.#range = { from: at, to: at + 1 };
    await tick();
    this.#settleSoon();
  }

  /** Restores a scroll position. */
  async goTo({ id, offset }: Place): Promise<void> {
    await this.show(id);
    const scroller = this.#scroller;
    const element = this.#elementOf(id);
    if (!scroller || !element) return;
    const top = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    scroller.scrollTop += top - offset;
    this.settle();
  }

  /** Anchors the current scroll position, and renders the items near the viewport. */
  settle(): void {
    this.#mark();
    this.#look();
  }

  #height(item: T): number {
    return this.#heights.get(item.id) ?? this.likely(item, this.#width);
  }

  /** Renders the viewport at once, and the margin around it in portions, one per frame. */
  #look(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    this.#measure();
    const { scrollTop, clientHeight } = scroller;
    const margin = Math.max(MARGIN_PX, MARGIN_VIEWS * clientHeight);
    const near = this.#within(scrollTop - margin / 2, scrollTop + clientHeight + margin / 2);
    const { from, to } = this.#range;
    if (near.from >= from && near.to <= to) return;
    const view = this.#within(scrollTop, scrollTop + clientHeight);
    const most = this.#within(scrollTop - margin, scrollTop + clientHeight + margin);
    const isApart = to <= view.from || from >= view.to;
    const drawn = isApart
      ? view
      : {
          from: Math.max(most.from, Math.min(view.from, from)),
          to: Math.min(most.to, Math.max(view.to, to)),
        };
    const hasView = from <= view.from && to >= view.to;
    this.#range = hasView ? this.#extended(drawn, most) : drawn;
    void tick().then(() => {
      // After a jump into omitted items there is no anchor until they are rendered.
      if (this.#anchor === null) this.#mark();
      else this.#restore();
      this.#settleSoon();
    });
  }

  /** Range with one more portion at each end, within `most`. */
  #extended({ from, to }: Range, most: Range): Range {
    const items = untrack(() => this.items());
    for (let room = PORTION_PX; room > 0 && from > most.from;)
      room -= this.#height(items[--from] as T);
    for (let room = PORTION_PX; room > 0 && to < most.to;) room -= this.#height(items[to++] as T);
    return { from, to };
  }

  /** Range of items between two heights. */
  #within(top: number, bottom: number): Range {
    return untrack(() => {
      const items = this.items();
      let from = 0;
      let end = 0;
      while (from < items.length - 1) {
        const height = this.#height(items[from] as T);
        if (end + height >= top) break;
        end += height;
        from += 1;
      }
      let to = from;
      while (to < items.length && end <= bottom) end += this.#height(items[to++] as T);
      return { from, to };
    });
  }

  /** Sets the anchor to the element at the top edge of the viewport. */
  #mark(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    this.#top = scroller.scrollTop;
    const { top, bottom } = scroller.getBoundingClientRect();
    const below = (element: Element): number => element.getBoundingClientRect().top - top;
    const item = uppermost(this.#elements.keys(), top);
    const inner = item && uppermost(item.querySelectorAll(this.anchors), top);
    const element = inner ?? item;
    this.#anchor =
      element && below(element) < bottom - top ? { element, offset: below(element) } : null;
    const id = item && this.#elements.get(item);
    this.place = item && id !== undefined ? { id, offset: below(item) } : null;

    const last = untrack(() => this.items()).at(-1);
    const end = last && this.#elementOf(last.id)?.lastElementChild;
    this.more = end ? end.getBoundingClientRect().bottom > bottom + 8 : false;
  }

  #elementOf(id: number): Element | undefined {
    for (const [element, of] of this.#elements) if (of === id) return element;
    return undefined;
  }

  #measure(): void {
    for (const [element, id] of this.#elements)
      this.#heights.set(id, element.getBoundingClientRect().height);
  }

  #grown(): void {
    this.#restore();
    // Rendered items may be lower than estimated, and leave part of the viewport empty.
    this.#settleSoon();
  }

  #settleSoon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.settle());
  }

  /** Scrolls so that the anchor is where it was. */
  #restore(): void {
    const scroller = this.#scroller;
    if (!scroller || this.follow.held || !this.#anchor?.element.isConnected) return;
    // The user has scrolled, but the event has not arrived.
    if (scroller.scrollTop !== this.#top) return;
    const { element, offset } = this.#anchor;
    const { top } = scroller.getBoundingClientRect();
    const moved = element.getBoundingClientRect().top - top - offset;
    if (Math.abs(moved) >= 1) scroller.scrollTop += moved;
    this.#top = scroller.scrollTop;
  }

  /** Discards all heights after a change of width. */
  #resized(): void {
    const width = this.#scroller?.clientWidth ?? 0;
    if (width === this.#width) {
      this.#restore();
      this.settle();
      return;
    }
    this.#heights.clear();
    this.#measure();
    this.#width = width;
    // Heights near the viewport are known again after rendering.
    void tick().then(() => {
      this.#restore();
      this.settle();
    });
  }

  /** Keeps items rendered that have the focus or a selection, which they would lose otherwise. */
  #keep(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    const idOf = (node: Node | null): number | undefined => {
      for (let at = node; at && at !== scroller; at = at.parentNode)
        if (at instanceof Element && this.#elements.has(at)) return this.#elements.get(at);
      return undefined;
    };
    const focused = idOf(document.activeElement);
    const kept = new Set(focused === undefined ? [] : [focused]);
    const selection = getSelection();
    if (selection && !selection.isCollapsed) {
      const items = untrack(() => this.items());
      const ends = [selection.anchorNode, selection.focusNode].map((node) => {
        const id = idOf(node);
        return items.findIndex((item) => item.id === id);
      });
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      if (low >= 0 && high - low < MOST_SELECTED)
        for (const item of items.slice(low, high + 1)) kept.add(item.id);
    }
    const same = kept.size === this.#kept.size && [...kept].every((id) => this.#kept.has(id));
    if (!same) this.#kept = kept;
  }
}

/** The uppermost element that extends below `top`. */
function uppermost(elements: Iterable<Element>, top: number): Element | undefined {
  let found: Element | undefined;
  let least = Infinity;
  for (const element of elements) {
    const rect = element.getBoundingClientRect();
    // The inner of nested elements comes later and does not begin higher.
    if (rect.bottom <= top + 1 || rect.top > least) continue;
    found = element;
    least = rect.top;
  }
  return found;
}
