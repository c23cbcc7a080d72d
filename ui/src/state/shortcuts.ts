import type { App } from "./app.svelte";

type Keys = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

export type Shortcut = {
  /** As the person reads it; "Ctrl" stands for ⌘ on a Mac. */
  keys: string;
  /** Other keys for the same. */
  also?: string;
  does: string;
  run: (app: App) => void;
  /** When the keys mean this; always, where it is left out. */
  when?: (app: App, inText: boolean) => boolean;
  /** In dialogs, too. */
  everywhere?: true;
  /** The web view must not have these keys, even where they mean nothing: it may bring its own find bar. */
  reserved?: true;
};

const hasMessages = (app: App): boolean => app.conversation.entries.length > 0;
const notInText = (_: App, inText: boolean): boolean => !inText;

export const shortcuts: Shortcut[] = [
  { keys: "Ctrl+N", does: "New chat", run: (app) => app.newChat() },
  { keys: "Ctrl+K", does: "Search all chats", run: (app) => app.searchChats() },
  {
    keys: "Ctrl+F",
    does: "Find in this chat",
    run: (app) => app.findInChat(),
    when: hasMessages,
    reserved: true,
  },
  {
    keys: "Ctrl+G",
    also: "F3",
    does: "Next match",
    run: (app) => app.find.step(1),
    when: hasMessages,
    reserved: true,
  },
  {
    keys: "Ctrl+Shift+G",
    also: "Shift+F3",
    does: "Previous match",
    run: (app) => app.find.step(-1),
    when: hasMessages,
    reserved: true,
  },
  { keys: "Ctrl+Z", does: "Undo the last change", run: (app) => void app.undo(), when: notInText },
  {
    keys: "Ctrl+Shift+Z",
    does: "Redo the last change",
    run: (app) => void app.redo(),
    when: notInText,
  },
  { keys: "Ctrl+B", does: "Show or hide the sidebar", run: (app) => app.toggleSidebar() },
  {
    keys: "Ctrl+Shift+M",
    does: "Models",
    run: (app) => (app.models.shown ? app.models.close() : app.models.show()),
    when: (app) => (app.models.shown && app.link === null) || !app.dialogOpen,
    everywhere: true,
  },
  { keys: "Ctrl+,", does: "Settings", run: (app) => (app.settingsPage = "General") },
  {
    keys: "Shift+ArrowUp",
    does: "Previous chat",
    run: (app) => app.openNeighbour(-1),
    when: notInText,
  },
  {
    keys: "Shift+ArrowDown",
    does: "Next chat",
    run: (app) => app.openNeighbour(1),
    when: notInText,
  },
  {
    keys: "Ctrl+Plus",
    does: "Zoom in",
    run: (app) => app.preferences.zoom(1),
    everywhere: true,
  },
  {
    keys: "Ctrl+Minus",
    does: "Zoom out",
    run: (app) => app.preferences.zoom(-1),
    everywhere: true,
  },
  {
    keys: "Ctrl+0",
    does: "Zoom back to 100 %",
    run: (app) => app.preferences.zoom(0),
    everywhere: true,
  },
  {
    keys: "Escape",
    does: "Stop the answer, or close a search",
    run: (app) =>
      app.conversation.writing
        ? void app.conversation.stop()
        : app.find.shown
          ? app.find.close()
          : app.search.ask(""),
    when: (app) =>
      (app.conversation.writing || app.find.shown || app.search.active) && !app.model.cardOpen,
  },
];

/** What Enter and the arrows do in the message box, for the list in the settings. */
export const boxKeys = [
  { keys: "Shift+Enter", does: "New line in the message" },
  { keys: "ArrowUp", does: "Edit the last message, from the empty box" },
];

/** What the keys mean; `inText` while the cursor stands in text that they could move or mark. */
export function shortcutFor(event: Keys, app: App, inText: boolean): Shortcut | undefined {
  return shortcuts.find(
    ({ when, everywhere, ...shortcut }) =>
      isMeant(event, shortcut) && (when?.(app, inText) ?? true) && (everywhere || !app.dialogOpen),
  );
}

/** Whether the web view must not have these keys. */
export function isReserved(event: Keys): boolean {
  return shortcuts.some((shortcut) => shortcut.reserved && isMeant(event, shortcut));
}

function isMeant(event: Keys, { keys, also }: Pick<Shortcut, "keys" | "also">): boolean {
  return pressed(event, keys) || (also !== undefined && pressed(event, also));
}

/** Keys that many layouts have behind Shift, and what they are without it. */
const signs: Record<string, string[]> = { Plus: ["+", "="], Minus: ["-", "_"] };

function pressed(event: Keys, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.at(-1) ?? "";
  const sign = signs[key];
  const isKey = sign
    ? sign.includes(event.key)
    : event.key.toLowerCase() === key.toLowerCase() && event.shiftKey === parts.includes("Shift");
  return isKey && (event.ctrlKey || event.metaKey) === parts.includes("Ctrl") && !event.altKey;
}
