/** The number drawn at once, and added at each frame after that, of items of a line. */
const STEP = 40;
/** The same of pieces of text as `PieceReader` cuts them, which are thousands of characters. */
export const PIECES_STEP = 8;

/** How many items of a long list are drawn: the first at once, more at each frame. */
export class Gradual {
  #count = $state(0);

  /** To be made where a component is set up; `total` is the number of items. */
  constructor(
    private readonly total: () => number,
    step = STEP,
  ) {
    this.#count = step;
    $effect(() => {
      if (this.#count >= this.total()) return;
      const frame = requestAnimationFrame(() => (this.#count += step));
      return () => cancelAnimationFrame(frame);
    });
  }

  get count(): number {
    return this.#count;
  }
}
