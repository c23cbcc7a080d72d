import type { Attachment } from "svelte/attachments";
import type { App } from "../state/app.svelte";
import type { Row, Section } from "../state/rows";
import type { ChatSummary, Folder } from "../state/types";
import { chatCount } from "../text/figures";

/** Distance that the pointer moves before a drag begins. */
const SLOP_PX = 6;
/** Distance from an edge at which the list scrolls, and the scroll step per frame. */
const EDGE_PX = 28;
const SCROLL_PX = 9;

/**
 * Drags chats into or out of folders and the pinned section, and reorders folders. Uses pointer
 * events, because native drag and drop is reserved for files dropped on the window.
 */
export class RowDrag {
  /** Label of the dragged item; null if none is. */
  label = $state<string | null>(null);
  x = $state(0);
  y = $state(0);
  /** Current drop target. */
  over = $state<Section | null>(null);
  #chats: ChatSummary[] = [];
  #folder: Folder | null = null;

  constructor(private readonly app: App) {}

  /** Attached to the list. */
  readonly attach: Attachment<HTMLElement> = (list) => {
    const onpointerdown = (event: PointerEvent): void => {
      if (event.button !== 0 || event.pointerType === "touch" || event.ctrlKey || event.shiftKey)
        return;
      const key = rowOf(event.target);
      const row = key === null ? undefined : this.app.list.rows[this.app.list.placeOf(key)];
      if (row && this.app.list.view === "chats") this.#follow(row, event, list);
    };
    list.addEventListener("pointerdown", onpointerdown);
    return () => list.removeEventListener("pointerdown", onpointerdown);
  };

  /** Follows the pointer from press to release. */
  #follow(row: Row, { clientX, clientY }: PointerEvent, list: HTMLElement): void {
    const scroller = list.parentElement;
    const abort = new AbortController();
    const { signal } = abort;
    let frame = 0;
    const scroll = (): void => {
      const view = scroller?.getBoundingClientRect();
      if (!view || !scroller || this.label === null) return;
      if (this.y < view.top + EDGE_PX) scroller.scrollTop -= SCROLL_PX;
      if (this.y > view.bottom - EDGE_PX) scroller.scrollTop += SCROLL_PX;
      this.#look();
      frame = requestAnimationFrame(scroll);
    };
    const end = (drops: boolean): void => {
      abort.abort();
      cancelAnimationFrame(frame);
      if (this.label === null) return;
      // Suppresses the click that follows the release.
      window.addEventListener("click", swallow, { capture: true, once: true });
      setTimeout(() => window.removeEventListener("click", swallow, { capture: true }));
      const { over } = this;
      this.label = this.over = null;
      if (drops && over !== null) this.#drop(over);
    };
    window.addEventListener(
      "pointermove",
      (event) => {
        const moved = Math.hypot(event.clientX - clientX, event.clientY - clientY);
        if (this.label === null && moved < SLOP_PX) return;
        [this.x, this.y] = [event.clientX, event.clientY];
        if (this.label === null && !this.#begin(row)) return abort.abort();
        if (frame === 0) frame = requestAnimationFrame(scroll);
        this.#look();
      },
      { signal },
    );
    window.addEventListener("pointerup", () => end(true), { signal });
    for (const name of ["pointercancel", "blur"])
      window.addEventListener(name, () => end(false), { signal });
    window.addEventListener(
      "keydown",
      (event) => {
        if (event.key !== "Escape" || this.label === null) return;
        event.stopPropagation();
        end(false);
      },
      { signal, capture: true },
    );
  }

  /** Returns false if this row cannot be dragged. */
  #begin(row: Row): boolean {
    this.#chats = [];
    this.#folder = null;
    if (row.kind === "folder") {
      this.#folder = row.folder;
      this.label = row.folder.name;
    } else if (row.kind === "chat" && !row.chat.temporary) {
      const chosen = this.app.list.chosen(row.chat).filter(({ temporary }) => !temporary);
      this.#chats = chosen;
      this.label = chosen.length === 1 ? row.chat.title : chatCount(chosen.length);
    }
    return this.label !== null;
  }

  #look(): void {
    const under = document.elementFromPoint(this.x, this.y);
    const section = under?.closest<HTMLElement>("[data-section]")?.dataset["section"];
    this.over = section === undefined ? null : this.#target(section);
  }

  /** Section by name, if it accepts the dragged item. */
  #target(name: string): Section | null {
    const section = name === "pinned" || name === "loose" ? name : Number(name);
    if (this.#folder)
      return typeof section === "number" && section !== this.#folder.id ? section : null;
    const isThere = (chat: ChatSummary): boolean =>
      section === "pinned"
        ? chat.pinned
        : section === "loose"
          ? !chat.pinned && chat.folder === null
          : chat.folder === section;
    return this.#chats.every(isThere) ? null : section;
  }

  #drop(section: Section): void {
    const { chats, folders, list } = this.app;
    if (this.#folder) {
      const to = folders.list.findIndex(({ id }) => id === section);
      void folders.move(this.#folder, to);
      return;
    }
    const pinned = this.#chats.filter((chat) => chat.pinned);
    if (section === "pinned") void chats.pin(this.#chats, true);
    else if (section === "loose" && pinned.length > 0) void chats.pin(pinned, false);
    else if (section === "loose") void chats.move(this.#chats, null);
    else void chats.move(this.#chats, folders.find(section) ?? null);
    list.clear();
  }
}

function swallow(event: Event): void {
  event.preventDefault();
  event.stopPropagation();
}

/** Key of the row whose button was pressed. */
function rowOf(target: EventTarget | null): string | null {
  const button = target instanceof Element ? target.closest<HTMLElement>("[data-row]") : null;
  return button?.dataset["row"] ?? null;
}
