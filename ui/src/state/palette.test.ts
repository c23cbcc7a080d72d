import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { SearchAnswer } from "../host/host";
import { textParts } from "../host/parts";
import { App } from "./app.svelte";
import { commands, offerCommands } from "./commands";
import type { PaletteRow } from "./palette.svelte";

let host: FakeHost;
let app: App;

beforeEach(async () => {
  vi.useFakeTimers();
  host = new FakeHost();
  app = new App(host);
  offerCommands(app);
  const started = app.start();
  await vi.advanceTimersByTimeAsync(200);
  await started;
});
afterEach(() => vi.useRealTimers());

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(100);

async function typed(query: string): Promise<void> {
  app.palette.ask(query);
  await settled();
}

const names = (): string[] => app.palette.sections.map(({ name }) => name);

function words(row: PaletteRow | undefined): string {
  switch (row?.type) {
    case "chat":
      return row.chat.title;
    case "command":
      return row.command.name;
    case "hit":
      return [...row.group.title, ...row.line.parts].map(({ text }) => text).join("");
    case "more":
      return `${row.count} more`;
    case undefined:
      return "";
  }
}

/** A result with these messages of one chat. */
const answer = (chat: number, messages: number[], title = "Birds"): SearchAnswer => {
  const hits = messages.map((message) => ({
    message,
    role: "user" as const,
    kind: "text" as const,
    snippet: `the \uE000bird\uE001 ${message}`,
    at: 1,
  }));
  const found = { chat, title, inTitle: false, at: 1, hits, count: hits.length };
  return { chats: [found], more: false, indexing: false };
};

/** Holds back the results of searches until the test releases them. */
function held(): Map<string, (found: SearchAnswer) => void> {
  const answers = new Map<string, (found: SearchAnswer) => void>();
  host.search = (query) => new Promise((resolve) => answers.set(query, resolve));
  return answers;
}

test("before anything is typed there are the recent chats, without the open one, and the commands", async () => {
  const [first, second] = app.chats.list;
  await app.navigation.open(first?.id ?? 0);
  app.palette.open();
  expect(names()).toEqual(["Recent chats", "Commands"]);
  expect(words(app.palette.rows[0])).toBe(second?.title);
  expect(app.palette.active).toBe(app.palette.rows[0]?.key);
  app.palette.enter();
  await settled();
  expect(app.conversation.chat).toBe(second?.id);
  expect(app.palette.shown).toBe(false);
});

test("commands are found by the beginnings of their words, and run", async () => {
  app.palette.open();
  await typed("theme: dark");
  expect(words(app.palette.rows[0])).toBe("Theme: dark");
  app.palette.enter();
  expect(app.preferences.value.theme).toBe("dark");
  app.palette.open();
  await typed("theme dark");
  expect(app.palette.sections.some(({ name }) => name === "Commands")).toBe(false);
});

test("a command that opens a dialog is there though the palette is one", async () => {
  app.palette.open();
  await typed("models");
  app.palette.enter();
  expect(app.models.shown).toBe(true);
});

test("the local API has one command, which its field's words find", async () => {
  app.palette.open();
  for (const query of ["local api", "openai server"]) {
    await typed(query);
    expect(app.palette.rows.map(words)).toEqual(["Local API settings"]);
  }
  app.palette.enter();
  expect(app.dialogs.settingsPage).toBe("Local API");
});

test("chats and messages are grouped, and a hit leads to its message", async () => {
  app.palette.open();
  await typed("spruce");
  expect(names()).toEqual(["Chats and messages"]);
  const [row] = app.palette.rows;
  expect(words(row)).toMatch(/A story about a small bird.*spruce/u);
  app.palette.enter();
  await settled();
  expect(app.current.chat?.title).toBe("A story about a small bird");
  expect(app.conversation.sought).not.toBeNull();
});

test("what answers an earlier query is dropped, and no more than two are asked at once", async () => {
  const answers = held();
  app.palette.open();
  for (const query of ["b", "bi", "bird"]) app.palette.ask(query);
  await settled();
  expect([...answers.keys()]).toEqual(["b"]);
  answers.get("b")?.(answer(1, [1]));
  await settled();
  expect(app.palette.rows.some(({ type }) => type === "hit")).toBe(false);
  expect([...answers.keys()]).toEqual(["b", "bird"]);
  answers.get("bird")?.(answer(1, [2]));
  await settled();
  expect(app.palette.rows.map(({ key }) => key)).toEqual(["hit-1-2"]);
});

test("Enter waits for the answer to what is typed", async () => {
  const answers = held();
  const opened = vi.spyOn(app.navigation, "open");
  app.palette.open();
  app.palette.ask("bird");
  app.palette.enter();
  await settled();
  expect(app.palette.shown).toBe(true);
  answers.get("bird")?.(answer(3, [7]));
  await settled();
  expect(opened).toHaveBeenCalledWith(3, 7, "bird", "text");
});

test("typing on takes an Enter back", async () => {
  const answers = held();
  app.palette.open();
  app.palette.ask("bird");
  app.palette.enter();
  app.palette.ask("birds");
  answers.get("bird")?.(answer(3, [7]));
  await settled();
  answers.get("birds")?.(answer(3, [7]));
  await settled();
  expect(app.palette.shown).toBe(true);
});

test("where the chats take long the commands come first, and nothing moves when the chats come", async () => {
  const answers = held();
  app.palette.open();
  await typed("settings");
  expect(app.palette.rows).not.toHaveLength(0);
  await vi.advanceTimersByTimeAsync(200);
  app.palette.step(1);
  const { active } = app.palette;
  const before = app.palette.rows.map(({ key }) => key);
  expect(before.length).toBeGreaterThan(1);
  answers.get("settings")?.(answer(1, [2]));
  await settled();
  expect(app.palette.rows.map(({ key }) => key)).toEqual([...before, "hit-1-2"]);
  expect(app.palette.active).toBe(active);
});

test("the keys go through all rows, round the ends, by pages and to the ends", () => {
  app.palette.open();
  const { palette } = app;
  const { rows } = palette;
  const at = (): number => rows.findIndex(({ key }) => key === palette.active);
  palette.step(-1);
  expect(at()).toBe(rows.length - 1);
  palette.step(1);
  expect(at()).toBe(0);
  palette.page(1);
  expect(at()).toBe(8);
  palette.page(-1);
  palette.page(-1);
  expect(at()).toBe(0);
  palette.toEnd("last");
  expect(at()).toBe(rows.length - 1);
  palette.page(1);
  expect(at()).toBe(rows.length - 1);
});

test("of a chat with many places three are shown, and the others when they are asked for", async () => {
  const all = answer(1, [1, 2, 3, 4, 5]).chats[0]?.hits ?? [];
  const few = answer(1, [1, 2, 3]);
  const chats = few.chats.map((chat) => ({ ...chat, count: 5 }));
  host.search = () => Promise.resolve({ ...few, chats });
  host.searchChat = () => Promise.resolve(all);
  app.palette.open();
  await typed("bird");
  expect(app.palette.rows.map(({ key }) => key)).toEqual([
    "hit-1-1",
    "hit-1-2",
    "hit-1-3",
    "more-1",
  ]);
  app.palette.toEnd("last");
  app.palette.enter();
  await settled();
  expect(app.palette.shown).toBe(true);
  expect(app.palette.rows).toHaveLength(5);
  expect(app.palette.active).toBe("hit-1-4");
});

test("nothing found is said, and a search that fails says why", async () => {
  app.palette.open();
  await typed("xylophone");
  expect(app.palette.words).toBe("Nothing found for “xylophone”");
  host.search = () => Promise.reject(new Error("The disk is gone."));
  await typed("xylo");
  expect(app.palette.fault).toBe("Error: The disk is gone.");
  await typed("");
  expect(app.palette.fault).toBeNull();
});

test("the title of a hit cannot be reordered", async () => {
  host.search = () => Promise.resolve(answer(1, [1], "good\u202Efugg.exe"));
  app.palette.open();
  await typed("good");
  expect(words(app.palette.rows[0])).toContain("goodfugg.exe");
});

test("no two commands have the same name", () => {
  expect(new Set(commands.map(({ name }) => name)).size).toBe(commands.length);
});

test("a chat of the bin is not gone on with, nor summed up", async () => {
  const [chat] = app.chats.list;
  if (!chat) throw new Error("no chat");
  await app.navigation.open(chat.id);
  const offered = (): boolean =>
    app.palette.commands().some(({ name }) => name === "Start a new chat with a summary");
  expect(offered()).toBe(true);
  await app.deletion.remove([chat]);
  await app.list.show("bin");
  await app.navigation.open(chat.id);
  expect(app.current.readOnly).toBe(true);
  expect(offered()).toBe(false);
});

test("a sign is searched for, and names no command", async () => {
  const [chat] = [...host.library.chats.values()].slice(-1);
  if (!chat?.messages[0]) throw new Error("no message");
  chat.messages[0].parts = textParts("An eagle: 🦅, 2 * 3");
  app.palette.open();
  for (const sign of ["🦅", "*"]) {
    await typed(sign);
    expect(names(), sign).toEqual(["Chats and messages"]);
    expect(words(app.palette.rows[0]), sign).toContain(sign);
  }
});
