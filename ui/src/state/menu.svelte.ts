import type { Attachment } from "svelte/attachments";

export type MenuItem = {
  label: string;
  /** Equivalent keys. */
  keys?: string;
  run: () => void;
  danger?: boolean;
  disabled?: boolean;
};

export type OpenMenu = {
  groups: MenuItem[][];
  x: number;
  y: number;
  /** Bottom edge of the menu if there is no room below `y`; defaults to `y`. */
  above?: number;
  byKey: boolean;
};

/** Context menu of the element under the pointer, or of the focused one. */
export class ContextMenu {
  shown = $state.raw<OpenMenu | null>(null);
  /** Items offered by the elements along the event's path so far. */
  #offered: MenuItem[][] = [];
  #byKey = false;

  /** Offers these items of an element, after those of its descendants. */
  offers(items: (target: Element) => MenuItem[]): Attachment<HTMLElement> {
    return this.offersGroups((target) => [items(target)]);
  }

  /** Offers several groups of items. */
  offersGroups(groups: (target: Element) => MenuItem[][]): Attachment<HTMLElement> {
    return (element) => {
      const onmenu = ({ target }: Event): void => {
        if (target instanceof Element) this.#offered.push(...groups(target));
      };
      element.addEventListener("contextmenu", onmenu);
      return () => element.removeEventListener("contextmenu", onmenu);
    };
  }

  /** Opens with the items for `selection` and all offered ones, unless there are none. */
  open({ clientX, clientY }: Pick<MouseEvent, "clientX" | "clientY">, selection: MenuItem[]): void {
    const groups = [selection, ...this.#offered].filter((items) => items.length > 0);
    this.#offered = [];
    this.shown = groups.length > 0 ? { groups, x: clientX, y: clientY, byKey: this.#byKey } : null;
  }

  /** Drops the offered items: the event's target has a menu of its own. */
  pass(): void {
    this.#offered = [];
    this.shown = null;
  }

  /** Opens these items below a pressed button. A press by keyboard has no detail. */
  openBelow({ currentTarget, detail }: UIEvent, groups: MenuItem[][]): void {
    if (!(currentTarget instanceof Element)) return;
    const { left, top, bottom } = currentTarget.getBoundingClientRect();
    const shown = groups.filter((items) => items.length > 0);
    this.shown = { groups: shown, x: left, y: bottom + 4, above: top - 4, byKey: detail === 0 };
  }

  /** Opens the menu of an element, as a right click would. */
  request(element: Element): void {
    const { left, bottom } = element.getBoundingClientRect();
    this.#byKey = true;
    element.dispatchEvent(
      new MouseEvent("contextmenu", {
        bubbles: true,
        cancelable: true,
        clientX: left + 8,
        clientY: Math.min(bottom, window.innerHeight - 8),
      }),
    );
    this.#byKey = false;
  }

  close(): void {
    this.shown = null;
  }
}
