import type { App } from "./app.svelte";

type Keys = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

export type Shortcut = {
  /** As the person reads it; "Ctrl" stands for ⌘ on a Mac. */
  keys: string;
  does: string;
  run: (app: App) => void;
  /** When the keys mean this; always, where it is left out. */
  when?: (app: App, inText: boolean) => boolean;
};

const notInText = (_: App, inText: boolean): boolean => !inText;

export const shortcuts: Shortcut[] = [
  { keys: "Ctrl+N", does: "New chat", run: (app) => app.newChat() },
  { keys: "Ctrl+K", does: "Search all chats", run: (app) => app.searchChats() },
  { keys: "Ctrl+B", does: "Show or hide the sidebar", run: (app) => app.toggleSidebar() },
  {
    keys: "Ctrl+Shift+M",
    does: "Show the model",
    run: (app) => (app.model.cardOpen = !app.model.cardOpen),
  },
  { keys: "Ctrl+,", does: "Settings", run: (app) => (app.settingsOpen = true) },
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
    keys: "Escape",
    does: "Stop the answer",
    run: (app) => void app.conversation.stop(),
    when: (app) => app.conversation.writing && !app.model.cardOpen,
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
    ({ keys, when }) => pressed(event, keys) && (when?.(app, inText) ?? true) && !app.dialogOpen,
  );
}

function pressed(event: Keys, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.at(-1) ?? "";
  return (
    event.key.toLowerCase() === key.toLowerCase() &&
    (event.ctrlKey || event.metaKey) === parts.includes("Ctrl") &&
    event.shiftKey === parts.includes("Shift") &&
    !event.altKey
  );
}
