import type { Attachment } from "svelte/attachments";

type Way = { items: string; along: "down" | "across" };

const STEPS = {
  down: { ArrowDown: 1, ArrowUp: -1 },
  across: { ArrowRight: 1, ArrowLeft: -1 },
} as const;

/**
 * Makes a list a single tab stop (roving tabindex): the arrow keys, Home and End move among its
 * `items`. The stop is the focused item; without focus it is the current one, else the last focused
 * one. A removed item passes the focus to the item that takes its place.
 */
export function oneStop({ items, along }: Way): Attachment<HTMLElement> {
  return (list) => {
    const all = (): HTMLElement[] => [...list.querySelectorAll<HTMLElement>(items)];
    let stop: HTMLElement | null = null;
    /** True while the stop has the focus, or had it until it was removed. */
    let hasFocus = false;
    /** Items at the last update. */
    let before: HTMLElement[] = [];

    const settle = (): void => {
      const everything = all();
      const isLost =
        hasFocus && stop?.isConnected === false && document.activeElement === document.body;
      if (stop && isLost)
        everything[Math.min(before.indexOf(stop), everything.length - 1)]?.focus();
      before = everything;
      const focused = everything.find((item) => item === document.activeElement);
      const current = everything.find((item) => item.hasAttribute("aria-current"));
      const last = everything.find((item) => item === stop);
      hasFocus = focused !== undefined;
      stop = focused ?? current ?? last ?? everything[0] ?? null;
      for (const item of everything) {
        const index = item === stop ? 0 : -1;
        if (item.tabIndex !== index) item.tabIndex = index;
      }
    };
    const onfocusin = (event: FocusEvent): void => {
      if (!(event.target instanceof HTMLElement) || !event.target.matches(items)) return;
      if (stop) stop.tabIndex = -1;
      stop = event.target;
      stop.tabIndex = 0;
      hasFocus = true;
    };
    const onfocusout = (): void => {
      // Chromium also fires it for an item that is being removed, which still counts as focused.
      queueMicrotask(() => {
        if (stop?.isConnected) hasFocus = stop === document.activeElement;
      });
    };
    const onkeydown = (event: KeyboardEvent): void => {
      const { key, target } = event;
      if (event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
      if (!(target instanceof HTMLElement) || !target.matches(items)) return;
      const step = (STEPS[along] as Record<string, number>)[key] ?? 0;
      if (step === 0 && key !== "Home" && key !== "End") return;
      const everything = all();
      const at = everything.indexOf(target);
      const next =
        key === "Home" ? everything[0] : key === "End" ? everything.at(-1) : everything[at + step];
      if (!next) return;
      event.preventDefault();
      event.stopPropagation();
      next.focus();
    };
    const changes = new MutationObserver(settle);
    changes.observe(list, {
      childList: true,
      subtree: true,
      attributeFilter: ["disabled", "aria-current"],
    });
    settle();
    list.addEventListener("focusin", onfocusin);
    list.addEventListener("focusout", onfocusout);
    list.addEventListener("keydown", onkeydown);
    return () => {
      changes.disconnect();
      list.removeEventListener("focusin", onfocusin);
      list.removeEventListener("focusout", onfocusout);
      list.removeEventListener("keydown", onkeydown);
    };
  };
}
