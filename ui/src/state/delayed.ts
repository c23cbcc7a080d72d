import { Sequence } from "./sequence";

/** Debounces an action: runs the last one a moment after the last call, or on `flush`. */
export class Delayed {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #act: (() => Promise<unknown>) | null = null;
  readonly #sequence = new Sequence();

  constructor(private readonly afterMs: number) {}

  run(act: () => Promise<unknown>): void {
    this.#act = act;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.flush(), this.afterMs);
  }

  /** Resolves once the pending action is done. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    const act = this.#act;
    this.#act = null;
    if (act) void this.#sequence.run(act);
    await this.#sequence.done;
  }
}
