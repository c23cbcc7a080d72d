import type { Attachment } from "svelte/attachments";

export type MenuItem = {
  label: string;
  /** Keys that do the same. */
  keys?: string;
  run: () => void;
  danger?: boolean;
  disabled?: boolean;
};

export type OpenMenu = {
  groups: MenuItem[][];
  x: number;
  y: number;
  /** Where it ends if there is no room below `y`; at `y`, where it is left out. */
  above?: number;
  byKey: boolean;
};

/** The menu of what lies under the pointer, or of what has the focus. */
export class ContextMenu {
  shown = $state.raw<OpenMenu | null>(null);
  /** What the elements offer that the event has passed on its way up. */
  #offered: MenuItem[][] = [];
  #byKey = false;

  /** Has an element offer these items, after those of what lies in it. */
  offers(items: (target: Element) => MenuItem[]): Attachment<HTMLElement> {
    return this.offersGroups((target) => [items(target)]);
  }

  /** The same with several groups of items. */
  offersGroups(groups: (target: Element) => MenuItem[][]): Attachment<HTMLElement> {
    return (element) => {
      const onmenu = ({ target }: Event): void => {
        if (target instanceof Element) this.#offered.push(...groups(target));
      };
      element.addEventListener("contextmenu", onmenu);
      return () => element.removeEventListener("contextmenu", onmenu);
    };
  }

  /** Opens with the items for `selection` and all that was offered; not without any item. */
  open({ clientX, clientY }: Pick<MouseEvent, "clientX" | "clientY">, selection: MenuItem[]): void {
    const groups = [selection, ...this.#offered].filter((items) => items.length > 0);
    this.#offered = [];
    this.shown = groups.length > 0 ? { groups, x: clientX, y: clientY, byKey: this.#byKey } : null;
  }

  /** Forgets what was offered: the event is about something that has a menu of its own. */
  pass(): void {
    this.#offered = [];
    this.shown = null;
  }

  /** Opens these items below a button that was pressed. A press by the keyboard has no detail. */
  openBelow({ currentTarget, detail }: UIEvent, groups: MenuItem[][]): void {
    if (!(currentTarget instanceof Element)) return;
    const { left, top, bottom } = currentTarget.getBoundingClientRect();
    const shown = groups.filter((items) => items.length > 0);
    this.shown = { groups: shown, x: left, y: bottom + 4, above: top - 4, byKey: detail === 0 };
  }

  /** Asks for the menu of an element, as the pointer would. */
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
