import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { App } from "./app.svelte";
import { isReserved, shortcutFor, shortcuts } from "./shortcuts";

const press = (
  key: string,
  held: ("ctrl" | "meta" | "shift" | "alt")[] = [],
  inText = false,
): string | undefined =>
  shortcutFor(
    {
      key,
      ctrlKey: held.includes("ctrl"),
      metaKey: held.includes("meta"),
      shiftKey: held.includes("shift"),
      altKey: held.includes("alt"),
    },
    app,
    inText,
  )?.name;

const app = new App(new FakeHost());

test.each([
  ["n", ["ctrl"], "New chat"],
  ["N", ["ctrl"], "New chat"],
  ["n", ["meta"], "New chat"],
  [",", ["ctrl"], "Settings"],
  ["M", ["ctrl", "shift"], "Models"],
  ["ArrowUp", ["shift"], "Previous chat"],
  ["+", ["ctrl"], "Zoom in"],
  ["=", ["ctrl"], "Zoom in"],
  ["+", ["ctrl", "shift"], "Zoom in"],
  ["-", ["meta"], "Zoom out"],
  ["0", ["ctrl"], "Zoom back to 100 %"],
  ["n", [], undefined],
  ["n", ["ctrl", "shift"], "New temporary chat"],
  ["n", ["ctrl", "alt"], undefined],
  ["Escape", [], undefined],
] as const)("%s with %j", (key, held, does) => {
  expect(press(key, [...held])).toBe(does);
});

test("keys that mark text do so in a text", () => {
  expect(press("ArrowUp", ["shift"], true)).toBeUndefined();
  expect(press("n", ["ctrl"], true)).toBe("New chat");
});

test("nothing is reached past an open dialog", () => {
  app.dialogs.settingsPage = "General";
  expect(press("n", ["ctrl"])).toBeUndefined();
  expect(press("+", ["ctrl"])).toBe("Zoom in");
  app.dialogs.settingsPage = null;
});

test("the keys of the models page close it, too, but not from under another dialog", () => {
  const [keys, held] = ["M", ["ctrl", "shift"]] as const;
  app.models.shown = true;
  expect(press(keys, [...held])).toBe("Models");
  expect(press("n", ["ctrl"])).toBeUndefined();
  app.dialogs.link = "https://example.org";
  expect(press(keys, [...held])).toBeUndefined();
  app.models.shown = false;
  app.dialogs.link = null;
  app.dialogs.settingsPage = "General";
  expect(press(keys, [...held])).toBeUndefined();
  app.dialogs.settingsPage = null;
});

test("no two shortcuts have the same keys", () => {
  expect(new Set(shortcuts.map(({ keys }) => keys)).size).toBe(shortcuts.length);
});

test("keys of the find bar mean something only in a chat, and the web view never has them", async () => {
  const chat = new App(new FakeHost());
  await chat.start();
  const [first] = chat.chats.list;
  const keys = { key: "f", ctrlKey: false, metaKey: true, shiftKey: false, altKey: false };
  expect(shortcutFor(keys, chat, true)).toBeUndefined();
  expect(isReserved(keys)).toBe(true);
  await chat.navigation.open(first?.id ?? 0);
  expect(shortcutFor(keys, chat, true)?.name).toBe("Find in this chat");
  const next = { ...keys, metaKey: false, key: "F3" };
  expect(shortcutFor(next, chat, true)?.name).toBe("Next match");
  expect(shortcutFor({ ...next, shiftKey: true }, chat, true)?.name).toBe("Previous match");
  expect(shortcutFor({ ...keys, key: "G", shiftKey: true }, chat, true)?.name).toBe(
    "Previous match",
  );
  expect(isReserved({ ...keys, key: "n" })).toBe(false);
});
