/** Does what it was given last, a moment after the last call or as soon as it is asked to. */
export class Delayed {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #act: (() => Promise<unknown>) | null = null;
  #done: Promise<unknown> = Promise.resolve();
  #running = 0;

  constructor(private readonly afterMs: number) {}

  run(act: () => Promise<unknown>): void {
    this.#act = act;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), this.afterMs);
  }

  /** Comes when all is done. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    const act = this.#act;
    this.#act = null;
    if (act) {
      // One after the other: the host may take up requests in another order. The first one at once: the window may be going.
      const doing = this.#running === 0 ? act() : this.#done.then(act);
      this.#running += 1;
      this.#done = doing.finally(() => (this.#running -= 1));
    }
    await this.#done;
  }

  /** Something is to be done, or is being done. */
  get pending(): boolean {
    return this.#act !== null || this.#running > 0;
  }
}
