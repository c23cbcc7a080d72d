import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { App } from "./app.svelte";
import type { ChatList } from "./list.svelte";
import { chatKey, folderKey } from "./rows";
import { start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const keys = ({ rows }: ChatList): string[] =>
  rows.flatMap((row) => (row.kind === "chat" ? [row.key] : []));
const selected = ({ selection }: ChatList): string[] => selection.map(({ id }) => chatKey(id));

async function listed(): Promise<{ app: App; list: ChatList; all: string[] }> {
  const { app } = await start();
  return { app, list: app.list, all: keys(app.list) };
}

test("neighbours follow what is shown", async () => {
  const { app, list } = await listed();
  const [first, second, third] = app.chats.list;
  if (!first || !second || !third) throw new Error("no chats");
  expect(list.neighbour(null, 1)?.id).toBe(first.id);
  expect(list.neighbour(first.id, 1)?.id).toBe(second.id);
  expect(list.neighbour(first.id, -1)).toBeUndefined();
  await app.chats.pin([third], true);
  expect(list.neighbour(first.id, -1)?.id).toBe(third.id);
  await app.chats.archive([second], true);
  expect(list.neighbour(first.id, 1)?.id).not.toBe(second.id);
});

test("chats are selected one by one, from one to another, and all", async () => {
  const { list, all } = await listed();
  const [a, b, c, d] = all as [string, string, string, string];
  list.toggle(c);
  list.toggle(a);
  expect(selected(list)).toEqual([a, c]);
  list.toggle(c);
  expect(selected(list)).toEqual([a]);
  list.toggle(b);
  list.extend(d);
  expect(selected(list)).toEqual([b, c, d]);
  list.extend(a);
  expect(selected(list)).toEqual([a, b]);
  list.selectAll();
  expect(selected(list)).toEqual(all);
  list.clear();
  expect(selected(list)).toEqual([]);
});

test("a range begins at the cursor where nothing is selected", async () => {
  const { list, all } = await listed();
  list.cursor = all[1] as string;
  list.extend(all[3] as string);
  expect(selected(list)).toEqual(all.slice(1, 4));
});

test("what goes is selected no more, and a menu is about what is selected", async () => {
  const { app, list, all } = await listed();
  list.toggle(all[0] as string);
  list.toggle(all[1] as string);
  const [first, second, third] = app.chats.list;
  if (!first || !second || !third) throw new Error("no chats");
  expect(list.chosen(second)).toHaveLength(2);
  expect(list.chosen(third)).toEqual([third]);
  await app.deletion.remove([first]);
  expect(selected(list)).toEqual([all[1]]);
});

test("keys pass over the names of groups, and stay within the list", async () => {
  const { list, all } = await listed();
  list.cursor = all[0] as string;
  expect(list.next(1)?.key).toBe(all[1]);
  expect(list.next(2)?.key, "of the next group").toBe(all[2]);
  expect(list.next(Infinity)?.key).toBe(all.at(-1));
  expect(list.next(-1)).toBeUndefined();
});

test("a new folder is named in its place, with a name that is free", async () => {
  const { app, list } = await listed();
  await list.newFolder();
  await list.newFolder();
  const names = app.folders.list.map(({ name }) => name);
  expect(names).toEqual(["New folder", "New folder 2"]);
  expect(list.renaming).toBe(folderKey(app.folders.list[1]?.id ?? 0));
  const [first] = app.folders.list;
  if (!first) throw new Error("no folder");
  expect(await app.folders.rename(first, "new FOLDER 2")).toBe(false);
  expect(app.notices.list.at(-1)?.text).toBe("There is already a folder “New folder 2”.");
  await app.folders.collapse(first, true);
  expect(app.folders.list[0]?.collapsed).toBe(true);
});

test("archived chats and the bin are views of the list, which follow what happens", async () => {
  const { app, list, all } = await listed();
  const [first, second] = app.chats.list;
  if (!first || !second) throw new Error("no chats");
  await app.chats.archive([first], true);
  await list.show("archive");
  expect(keys(list)).toEqual([all[0]]);
  await app.deletion.remove([second]);
  await list.show("bin");
  expect(keys(list)).toEqual([all[1]]);
  await app.navigation.open(second.id);
  expect(app.current.readOnly).toBe(true);
  expect(app.current.chat?.title).toBe(second.title);
  await app.history.undo();
  await vi.advanceTimersByTimeAsync(1);
  expect(keys(list)).toEqual([]);
  expect(app.current.readOnly).toBe(false);
  await app.deletion.remove([second]);
  await vi.advanceTimersByTimeAsync(1);
  await app.navigation.open(second.id);
  await app.deletion.deleteForGood(list.bin);
  expect(keys(list)).toEqual([]);
  expect(app.conversation.chat, "there is nothing left to read").toBeNull();
  expect(list.view).toBe("bin");
  app.navigation.newChat();
  expect(list.view).toBe("chats");
  expect(keys(list)).toEqual(all.slice(2));
});
