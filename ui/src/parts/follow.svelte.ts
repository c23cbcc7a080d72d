import type { Attachment } from "svelte/attachments";

/** How near to the end, in pixels, counts as the end. */
const NEAR = 24;
/** How long after a wheel, key or press a move still counts as the reader's own. */
const ECHO_MS = 400;

/**
 * Keeps a scroller at its end while its content grows, as long as the reader is there. A move up by
 * wheel, key, touch or bar lets go; coming back to the end takes hold again.
 *
 * The position alone does not tell who moved it: WebKit also moves it up when a block that is drawn
 * again is lower for a moment. So while the content is changing, a move counts as the reader's only
 * close to something they did.
 */
export class Follow {
  /** Whether the view moves with the end. */
  held = $state(true);
  #scroller: HTMLElement | undefined;
  #top = 0;
  /** Until when, on the clock of `performance.now()`, moves are the reader's. */
  #readersUntil = 0;
  /** When the content last changed its height, on the same clock. */
  #changedAt = 0;

  readonly attach: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    const growth = new ResizeObserver(() => {
      this.#changedAt = performance.now();
      this.#stick();
    });
    growth.observe(scroller);
    for (const child of scroller.children) growth.observe(child);

    const abort = new AbortController();
    const on = <Name extends keyof HTMLElementEventMap>(
      name: Name,
      listener: (event: HTMLElementEventMap[Name]) => void,
    ): void => scroller.addEventListener(name, listener, { signal: abort.signal, passive: true });
    on("scroll", () => this.#look());
    on("wheel", (event) => this.#touch(event.deltaY < 0));
    on("keydown", (event) => this.#touch(["ArrowUp", "PageUp", "Home"].includes(event.key)));
    on("touchmove", () => this.#touch());
    on("pointerdown", () => (this.#readersUntil = Infinity));
    // After a drag of the bar, WebKit reports no release: a move without a button tells of it.
    on(
      "pointermove",
      ({ buttons }) => buttons === 0 && this.#readersUntil === Infinity && this.#touch(),
    );
    on("pointerup", () => this.#touch());
    on("click", (event) => this.#rest(event.target));
    return () => {
      growth.disconnect();
      abort.abort();
    };
  };

  /** Goes to the end and stays there. */
  toEnd(): void {
    this.held = true;
    this.#stick();
  }

  /** Lets go, so that the view may rest elsewhere. */
  release(): void {
    this.held = false;
  }

  #touch(lettingGo = false): void {
    this.#readersUntil = performance.now() + ECHO_MS;
    const scroller = this.#scroller;
    if (lettingGo && scroller && scroller.scrollTop > 0) this.held = false;
  }

  /** Unfolding something must not move it from under the pointer. */
  #rest(target: EventTarget | null): void {
    if (target instanceof Element && target.closest("[aria-expanded]")) this.held = false;
  }

  #stick(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    if (this.held) scroller.scrollTop = scroller.scrollHeight;
    this.#top = scroller.scrollTop;
  }

  #look(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    const { scrollTop, scrollHeight, clientHeight } = scroller;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    const up = scrollTop < this.#top - 1;
    const now = performance.now();
    const readers = now < this.#readersUntil || now > this.#changedAt + ECHO_MS;
    if (up && !atEnd && readers) this.held = false;
    else if (atEnd && scrollTop > this.#top) this.held = true;
    if (this.held && !atEnd) this.#stick();
    this.#top = scroller.scrollTop;
  }
}
