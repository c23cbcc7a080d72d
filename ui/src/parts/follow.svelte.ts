import type { Attachment } from "svelte/attachments";

/** Distance from the end, in pixels, that counts as the end. */
const NEAR = 24;
/** Time after a wheel, key or pointer event in which a scroll is attributed to the user. */
const ECHO_MS = 400;

/**
 * Keeps a scroller at its end while its content grows, as long as the user is there. Scrolling up
 * by wheel, key, touch or scroll bar releases it; returning to the end holds it again.
 *
 * The scroll position alone does not tell who changed it: WebKit also scrolls up when a block is
 * lower for a moment while it is rendered again. So while the content changes, a scroll is only
 * attributed to the user shortly after an input event.
 */
export class Follow {
  /** True if the view follows the end. */
  held = $state(true);
  #scroller: HTMLElement | undefined;
  #top = 0;
  /**
   * End of the time in which scrolls are attributed to the user, on the clock of
   * `performance.now()`.
   */
  #readersUntil = 0;
  /** Last change of the content's height, on the same clock. */
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
    // WebKit sends no pointerup after a drag of the scroll bar. A move without a pressed button
    // implies it.
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

  /** Scrolls to the end and follows it. */
  toEnd(): void {
    this.held = true;
    this.#stick();
  }

  /** Stops following the end. */
  release(): void {
    this.held = false;
  }

  #touch(lettingGo = false): void {
    this.#readersUntil = performance.now() + ECHO_MS;
    const scroller = this.#scroller;
    if (lettingGo && scroller && scroller.scrollTop > 0) this.held = false;
  }

  /** Stops following when something is expanded, which would move it away from the pointer. */
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
