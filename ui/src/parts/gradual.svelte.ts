/** The number drawn at once, and added at each frame after that. */
const STEP = 40;

/** How many items of a long list are drawn: the first at once, more at each frame. */
export class Gradual {
  #count = $state(STEP);

  /** To be made where a component is set up; `total` is the number of items. */
  constructor(private readonly total: () => number) {
    $effect(() => {
      if (this.#count >= this.total()) return;
      const frame = requestAnimationFrame(() => (this.#count += STEP));
      return () => cancelAnimationFrame(frame);
    });
  }

  get count(): number {
    return this.#count;
  }
}
