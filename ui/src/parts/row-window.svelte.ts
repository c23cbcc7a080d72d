import type { Attachment } from "svelte/attachments";

/** Distance from the viewport, in pixels, within which rows are rendered. */
const MARGIN_PX = 400;
/** Distance scrolled before the range of rows is updated. */
const STEP_PX = 200;

type Keyed = { readonly key: string };

/** A rendered row, its distance from the top in pixels, and its index among all rows. */
export type Placed<T> = { row: T; top: number; at: number };

/**
 * Renders the rows of a long list that are near the viewport. Their heights are known, so every row
 * has a position without being rendered. For texts of unknown height, see `VirtualList`.
 */
export class RowWindow<T extends Keyed> {
  #top = $state(0);
  #view = $state(innerHeight);
  #scroller: HTMLElement | undefined;

  constructor(
    private readonly rows: () => readonly T[],
    private readonly heightOf: (row: T) => number,
    /** Rows that are always rendered because they have the focus or are next in the tab order. */
    private readonly kept: () => readonly string[],
  ) {}

  /** Bottom edge of each row. */
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

  /** Attached to the scroller, at whose top the list begins. */
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

  /** Scrolls a row into view, by as little as possible. */
  reveal(at: number): void {
    const scroller = this.#scroller;
    if (!scroller || at < 0) return;
    const [top, end] = [this.#topOf(at), this.#ends[at] ?? 0];
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (end > scroller.scrollTop + scroller.clientHeight)
      scroller.scrollTop = end - scroller.clientHeight;
  }

  /** Number of rows that fit in the viewport. */
  get perView(): number {
    const rows = this.rows().length;
    return Math.max(1, Math.floor((this.#view / (this.height || 1)) * rows) - 1);
  }

  #topOf(at: number): number {
    return at === 0 ? 0 : (this.#ends[at - 1] ?? 0);
  }
}

/** Index of the first end below `height`, by binary search; the last index if there is none. */
function firstBelow(ends: Float64Array, height: number): number {
  let [low, high] = [0, ends.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ends[middle] ?? 0) > height) high = middle;
    else low = middle + 1;
  }
  return low;
}
