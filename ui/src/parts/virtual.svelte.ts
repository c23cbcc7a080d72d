import { tick, untrack } from "svelte";
import type { Attachment } from "svelte/attachments";
import type { Follow } from "./follow.svelte";

/** How far beyond the view items are drawn, at the least and in views. */
const MARGIN_PX = 800;
const MARGIN_VIEWS = 1;
/** As many items are drawn beyond the view in one frame, at each side, so that no task is long. */
const MORE_ITEMS = 1;
/** As many items as this between the two ends of a selection stay drawn. */
const MOST_SELECTED = 200;

type Item = { readonly id: number };

/** An item that is drawn, and the height of those left out before it. */
export type Drawn<T extends Item> = { item: T; before: number };

/** Where the view stands: how far below its upper edge an item begins. */
export type Place = { id: number; offset: number };

/** The same of an element. */
type Anchor = { element: Element; offset: number };

/**
 * Draws of a long list what is near the view, so that it costs the same however long it is. The last item is always
 * drawn, as is what has the focus, a selection or a claim of its own. What is left out is a gap of the height that it
 * had, or is likely to have; when it turns out otherwise, what is being read stays where it is.
 */
export class VirtualList<T extends Item> {
  /** The end of the last item is further down. */
  more = $state(false);
  /** The item at the upper edge of the view. */
  place: Place | null = null;
  #range = $state.raw({ from: 0, to: 0 });
  #kept = $state.raw<ReadonlySet<number>>(new Set());
  #heights = new Map<number, number>();
  #elements = new Map<Element, number>();
  #anchor: Anchor | null = null;
  /** How far the view was scrolled when that was seen. */
  #top = 0;
  #scroller: HTMLElement | undefined;
  /** Of the list; 0 before it is in the page. */
  #width = $state(0);
  #sizes: ResizeObserver | undefined;
  #frame = 0;

  constructor(
    private readonly items: () => readonly T[],
    /** The height that an item is likely to have, in pixels, in a list of this width. */
    private readonly likely: (item: T, width: number) => number,
    private readonly follow: Follow,
    /** A selector: what the view is kept at within an item. */
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

  /** For the element that scrolls. */
  readonly attach: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    untrack(() => (this.#width = scroller.clientWidth));
    const abort = new AbortController();
    const { signal } = abort;
    scroller.addEventListener("scroll", () => this.settle(), { signal, passive: true });
    // The focus goes, too, while what had it is taken from the page, and nothing may change then.
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

  /** For the element of each item that is drawn. */
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

  /** Draws the end of the list, before anything is known of its height. */
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

  /** Draws an item, for the view to go there; its neighbours follow in frames of their own. */
  async show(id: number): Promise<void> {
    const at = untrack(() => this.items()).findIndex((item) => item.id === id);
    if (at < 0) return;
    this.#anchor = null;
    this.#range = { from: at, to: at + 1 };
    await tick();
  }

  /** Goes back to a place. */
  async goTo({ id, offset }: Place): Promise<void> {
    await this.show(id);
    const scroller = this.#scroller;
    const element = this.#elementOf(id);
    if (!scroller || !element) return;
    const top = element.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    scroller.scrollTop += top - offset;
    this.settle();
  }

  /** Keeps the view where it now stands, and draws what is near it. */
  settle(): void {
    this.#mark();
    this.#look();
  }

  #height(item: T): number {
    return this.#heights.get(item.id) ?? this.likely(item, this.#width);
  }

  /** Draws what is near the view: what is in it at once, and the rest in portions, one a frame. */
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
    const kept = to > view.from && from < view.to ? { from, to } : view;
    this.#range = {
      from: Math.max(most.from, Math.min(view.from, kept.from - MORE_ITEMS)),
      to: Math.min(most.to, Math.max(view.to, kept.to + MORE_ITEMS)),
    };
    void tick().then(() => {
      // Where the view was thrown among what was not drawn, there is only now something to keep it at.
      if (this.#anchor === null) this.#mark();
      else this.#restore();
      this.#settleSoon();
    });
  }

  /** The items that stand between these two heights. */
  #within(top: number, bottom: number): { from: number; to: number } {
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

  /** Remembers what stands at the upper edge of the view. */
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
    // What was drawn may be lower than was likely, and leave some of the view empty.
    this.#settleSoon();
  }

  #settleSoon(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.settle());
  }

  /** Brings what is being read back to where it was. */
  #restore(): void {
    const scroller = this.#scroller;
    if (!scroller || this.follow.held || !this.#anchor?.element.isConnected) return;
    // The reader has moved on, of which the event is still to come.
    if (scroller.scrollTop !== this.#top) return;
    const { element, offset } = this.#anchor;
    const { top } = scroller.getBoundingClientRect();
    const moved = element.getBoundingClientRect().top - top - offset;
    if (Math.abs(moved) >= 1) scroller.scrollTop += moved;
    this.#top = scroller.scrollTop;
  }

  /** In another width all has other heights, and the gaps with it. */
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
    // What is near the view is known again when it is back in its place.
    void tick().then(() => {
      this.#restore();
      this.settle();
    });
  }

  /** Keeps drawn what has the focus or is selected: it would lose that. */
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

/** The uppermost element of which something is below `top`. */
function uppermost(elements: Iterable<Element>, top: number): Element | undefined {
  let found: Element | undefined;
  let least = Infinity;
  for (const element of elements) {
    const rect = element.getBoundingClientRect();
    // Of one in another the inner one comes later, and begins no higher.
    if (rect.bottom <= top + 1 || rect.top > least) continue;
    found = element;
    least = rect.top;
  }
  return found;
}
