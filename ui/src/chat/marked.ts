import { copyText } from "../parts/clipboard";
import type { App } from "../state/app.svelte";
import type { MenuItem } from "../state/menu.svelte";

/** The text that is marked, if `target` is in it. */
export function markedText(target: EventTarget | null): string {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !(target instanceof Node)) return "";
  return selection.containsNode(target, true) ? selection.toString().trim() : "";
}

/** More words than these are no search, and a menu has no room for them. */
const MOST_SHOWN = 28;
const MOST_SEARCHED = 200;

export function menuForText(app: App, text: string): MenuItem[] {
  if (text === "") return [];
  const words = text.replace(/\s+/gu, " ").slice(0, MOST_SEARCHED);
  const shown = words.length > MOST_SHOWN ? `${words.slice(0, MOST_SHOWN).trimEnd()}…` : words;
  // The web view's own way keeps headings, lists and tables for programs that know them.
  const copy = { label: "Copy", run: () => void (document.execCommand("copy") || copyText(text)) };
  const search = { label: `Search chats for “${shown}”`, run: () => app.searchFor(words) };
  return app.dialogOpen ? [copy] : [copy, search];
}
