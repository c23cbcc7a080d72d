import type { App } from "./app.svelte";
import { commands, type Command } from "./commands";

type Keys = Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">;

/** A command with a keyboard shortcut. */
export type Shortcut = Command & { keys: string };

export const shortcuts = commands.filter((command): command is Shortcut => !!command.keys);

/** Keys that work in one place only, for the list in the settings. */
export const boxKeys = [
  { keys: "Shift+Enter", name: "New line in the message" },
  { keys: "ArrowUp", name: "Edit the last message, from the empty box" },
  { keys: "Slash", name: "Slash commands, from the empty box" },
  { keys: "Ctrl+Shift+Backspace", name: "Delete the message whose buttons have the focus" },
];

/** Shortcut for a key event. `inText`: the focus is in text that the keys could edit. */
export function shortcutFor(event: Keys, app: App, inText: boolean): Shortcut | undefined {
  return shortcuts.find(
    (shortcut) =>
      isMeant(event, shortcut) &&
      (shortcut.when?.(app, inText) ?? true) &&
      (!app.dialogOpen || worksInDialogs(shortcut, app)),
  );
}

const worksInDialogs = ({ inDialogs }: Shortcut, app: App): boolean =>
  typeof inDialogs === "function" ? inDialogs(app) : inDialogs === true;

/** Checks if the web view must not receive these keys. */
export function isReserved(event: Keys): boolean {
  return shortcuts.some((shortcut) => shortcut.reserved && isMeant(event, shortcut));
}

function isMeant(event: Keys, { keys, also }: Pick<Shortcut, "keys" | "also">): boolean {
  return pressed(event, keys) || (also !== undefined && pressed(event, also));
}

/** Keys that many layouts have on Shift, with their unshifted characters. */
const signs: Record<string, string[]> = { Plus: ["+", "="], Minus: ["-", "_"], Slash: ["/"] };

function pressed(event: Keys, keys: string): boolean {
  const parts = keys.split("+");
  const key = parts.at(-1) ?? "";
  const sign = signs[key];
  const isKey = sign
    ? sign.includes(event.key)
    : event.key.toLowerCase() === key.toLowerCase() && event.shiftKey === parts.includes("Shift");
  return isKey && (event.ctrlKey || event.metaKey) === parts.includes("Ctrl") && !event.altKey;
}
