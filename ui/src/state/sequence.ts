/**
 * Runs requests strictly one after the other, since the host may process concurrent ones out of
 * order.
 */
export class Sequence {
  /** Resolves once all requests are done. */
  done: Promise<unknown> = Promise.resolve();
  #running = 0;

  /** Runs a request, synchronously if none is pending, as the window may be closing. */
  run<T>(request: () => Promise<T>): Promise<T> {
    const { done } = this;
    let end = (): void => undefined;
    this.done = new Promise<void>((resolve) => (end = resolve));
    this.#running += 1;
    const running = this.#running === 1 ? request() : done.then(request);
    return running.finally(() => {
      this.#running -= 1;
      end();
    });
  }
}
