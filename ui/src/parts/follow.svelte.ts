import type { Attachment } from "svelte/attachments";

/** How near to the end, in pixels, counts as the end. */
const NEAR = 24;

/**
 * Keeps a scroller at its end while its content grows, as long as the reader is there. Any move away
 * from the end, by wheel, key, touch or bar, lets go; coming back to the end takes hold again.
 */
export class Follow {
  /** Whether the view moves with the end. */
  held = $state(true);
  #scroller: HTMLElement | undefined;
  /** The last position that we chose or saw. */
  #top = 0;
  #height = 0;

  readonly attach: Attachment<HTMLElement> = (scroller) => {
    this.#scroller = scroller;
    const growth = new ResizeObserver(() => this.#grow());
    growth.observe(scroller);
    for (const child of scroller.children) growth.observe(child);
    const abort = new AbortController();
    const listening = { signal: abort.signal, passive: true };
    scroller.addEventListener("scroll", () => this.#look(), listening);
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && this.#release(), listening);
    // Unfolding something must not move it from under the pointer.
    scroller.addEventListener("click", (event) => this.#rest(event.target), listening);
    return () => {
      growth.disconnect();
      abort.abort();
    };
  };

  /** Goes to the end and stays there. */
  toEnd(smooth = false): void {
    this.held = true;
    if (smooth && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#scroller?.scrollTo({ top: this.#scroller.scrollHeight, behavior: "smooth" });
    } else this.#grow();
  }

  /** Lets go, so that the view may rest elsewhere. */
  release(): void {
    this.held = false;
  }

  #release(): void {
    const scroller = this.#scroller;
    if (scroller && scroller.scrollHeight > scroller.clientHeight) this.held = false;
  }

  #rest(target: EventTarget | null): void {
    if (target instanceof Element && target.closest("[aria-expanded]")) this.held = false;
  }

  #grow(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    if (this.held) scroller.scrollTop = scroller.scrollHeight;
    this.#top = scroller.scrollTop;
    this.#height = scroller.scrollHeight;
  }

  #look(): void {
    const scroller = this.#scroller;
    if (!scroller) return;
    const { scrollTop, scrollHeight, clientHeight } = scroller;
    const atEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    // A shorter content moves the position too; only a move of the reader's lets go.
    const movedUp = scrollTop < this.#top - 1 && scrollHeight >= this.#height;
    if (movedUp && !atEnd) this.held = false;
    else if (atEnd && scrollTop > this.#top) this.held = true;
    this.#top = scrollTop;
    this.#height = scrollHeight;
  }
}
