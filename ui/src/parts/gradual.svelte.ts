/** Number of single-line items that are rendered first, and added per frame. */
const STEP = 40;
/** The same for pieces of text from `PieceReader`, which have thousands of characters. */
export const PIECES_STEP = 4;

/** Renders a long list gradually, a number of items per frame. */
export class Gradual {
  #count = $state(0);

  /** Requires the setup phase of a component. `total`: number of items. */
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
