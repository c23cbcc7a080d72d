/** Makes one request after the other: the host may take them up in another order. */
export class Sequence {
  /** Comes when all requests are over. */
  done: Promise<unknown> = Promise.resolve();
  #running = 0;

  /** Makes a request, the first one at once: the window may be going. */
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
