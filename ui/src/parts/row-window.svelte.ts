import type { Attachment } from "svelte/attachments";

/** How far beyond the view rows are drawn, in pixels. */
const MARGIN_PX = 400;
/** The view is looked at again when it has moved as far. */
const STEP_PX = 200;

type Keyed = { readonly key: string };

/** A row that is drawn, how far below the top it stands, and its place among all. */
export type Placed<T> = { row: T; top: number; at: number };

/**
 * Draws those rows of a long list that are near the view. The height of each is known, so that all have their place without
 * being drawn. For texts, whose heights are not, there is `VirtualList`.
 */
export class RowWindow<T extends Keyed> {
  #top = $state(0);
  #view = $state(innerHeight);
  #scroller: HTMLElement | undefined;

  constructor(
    private readonly rows: () => readonly T[],
    private readonly heightOf: (row: T) => number,
    /** Rows that are drawn wherever the view is, because they have the focus or get it by Tab. */
    private readonly kept: () => readonly string[],
  ) {}

  /** Where each row ends. */
  readonly #ends = $derived.by(() => {
    let end = 0;
    return Float64Array.from(this.rows(), (row) => (end += this.heightOf(row)));
  });

  readonly height = $derived(this.#ends.at(-1) ?? 0);

  readonly drawn = $derived.by(() => {
    const rows = this.rows();
    const ends = this.#ends;
    const from = firstBelow(ends, this.#top - MARGIN_PX);
    const to = firstBelow(ends, this.#top + STEP_PX + this.#view + MARGIN_PX) + 1;
    const kept = this.kept();
    const places = rows.flatMap(({ key }, at) =>
      (at >= from && at < to) || kept.includes(key) ? [at] : [],
    );
    return places.map((at): Placed<T> => ({ row: rows[at] as T, top: this.#topOf(at), at }));
  });

  /** For the element that scrolls, in which the list begins at the top. */
  readonly attach: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    const look = (): void => {
      this.#top = Math.floor(scroller.scrollTop / STEP_PX) * STEP_PX;
      this.#view = scroller.clientHeight;
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(scroller);
    scroller.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      scroller.removeEventListener("scroll", look);
      this.#scroller = undefined;
    };
  };

  /** Brings a row into the view, by as little as that takes. */
  reveal(at: number): void {
    const scroller = this.#scroller;
    if (!scroller || at < 0) return;
    const [top, end] = [this.#topOf(at), this.#ends[at] ?? 0];
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (end > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = end - scroller.clientHeight;
  }

  /** How many rows the view has room for. */
  get perView(): number {
    const rows = this.rows().length;
    return Math.max(1, Math.floor((this.#view / (this.height || 1)) * rows) - 1);
  }

  #topOf(at: number): number {
    return at === 0 ? 0 : (this.#ends[at - 1] ?? 0);
  }
}

/** The first place that ends below `height`, by bisection; the last one where none does. */
function firstBelow(ends: Float64Array, height: number): number {
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > height) high = middle;
    else low = middle + 1;
  }
  return low;
}
