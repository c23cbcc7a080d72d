/** So many are drawn at once, and at each frame after that. */
const STEP = 40;

/** How many of very many things are drawn: the first at once, the others a few at each frame. */
export class Gradual {
  #count = $state(STEP);

  /** To be made where a component is set up; `total` tells how many things there are. */
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
