import { copyText } from "../parts/clipboard";
import type { App } from "../state/app.svelte";
import type { MenuItem } from "../state/menu.svelte";

/** Selected text, if `target` is in the selection. */
export function markedText(target: EventTarget | null): string {
  const selection = document.getSelection();
  if (!selection || selection.isCollapsed || !(target instanceof Node)) return "";
  return selection.containsNode(target, true) ? selection.toString().trim() : "";
}

/** Limits of a label in the menu and of a search query, in characters. */
const MOST_SHOWN = 28;
const MOST_SEARCHED = 200;

export function menuForText(app: App, text: string): MenuItem[] {
  if (text === "") return [];
  const words = text.replace(/\s+/gu, " ").slice(0, MOST_SEARCHED);
  const shown = words.length > MOST_SHOWN ? `${words.slice(0, MOST_SHOWN).trimEnd()}…` : words;
  // The web view's own command also copies headings, lists and tables as rich text.
  const copy = { label: "Copy", run: () => void (document.execCommand("copy") || copyText(text)) };
  const run = (): void => {
    app.search.ask(words);
    app.search.focus();
  };
  const search = { label: `Search chats for “${shown}”`, run };
  return app.dialogOpen ? [copy] : [copy, search];
}
