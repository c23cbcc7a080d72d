import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { ChatSummary } from "../host/host";
import { Chats } from "./chats.svelte";
import { Notices } from "./notices.svelte";
import { chat } from "./rows.fixture";
import { start } from "./started.fixture";

const now = new Date(2026, 10, 18, 9, 0);
const at = (day: number, hour: number): number => new Date(2026, 10, day, hour).getTime() / 1000;

beforeEach(() => vi.useFakeTimers({ now }));
afterEach(() => vi.useRealTimers());

test("a chat that was written in comes first, and so does each of several", () => {
  const chats = new Chats(new FakeHost(), new Notices());
  const order = (): number[] => chats.list.map(({ id }) => id);
  chats.take([chat(1, at(17, 8)), chat(2, at(18, 8)), chat(3, at(10, 8))]);
  expect(order()).toEqual([2, 1, 3]);
  chats.put(chat(3, at(18, 9)));
  expect(order()).toEqual([3, 2, 1]);
  chats.put(chat(1, at(18, 10)), chat(4, at(18, 8)), chat(5, at(1, 1)));
  expect(order()).toEqual([1, 3, 4, 2, 5]);
  chats.drop([3, 5]);
  expect(order()).toEqual([1, 4, 2]);
  expect(chats.find(4)?.updatedAt).toBe(at(18, 8));
  expect(chats.find(3)).toBeUndefined();
});

/** Chats that receive their events, as in the application. */
async function listed(
  host: FakeHost,
  notices: Notices,
): Promise<{ chats: Chats; first: ChatSummary }> {
  const chats = new Chats(host, notices);
  await host.subscribe((event) => {
    if (event.type === "chatChanged") chats.put(event.chat);
    if (event.type === "chatsChanged") chats.put(...event.chats);
    if (event.type === "chatsRemoved") chats.drop(event.chats);
  });
  chats.take((await host.snapshot()).chats);
  const [first] = chats.list;
  if (!first) throw new Error("no chats");
  return { chats, first };
}

test("each change says what it was, and offers to take it back while it is the last one", async () => {
  const host = new FakeHost();
  const notices = new Notices({ undo: () => host.undo() });
  const { chats, first } = await listed(host, notices);
  const second = chats.list[1] as ChatSummary;
  await chats.archive([first, second], true);
  expect(notices.list[0]?.text).toBe("Archived 2 chats");
  await chats.remove([first]);
  expect(chats.find(first.id)).toBeUndefined();
  expect(notices.list.map(({ text, action }) => [text, action?.label])).toEqual([
    [`Deleted “${first.title}”`, "Undo"],
  ]);
  notices.list[0]?.action?.run();
  await vi.advanceTimersByTimeAsync(1);
  expect(chats.find(first.id)?.archived).toBe(true);
});

test("a chat that could not be deleted stays, with the reason", async () => {
  const host = new FakeHost();
  host.deleteChats = () => Promise.reject({ code: "store", message: "The disk is full." });
  const notices = new Notices();
  const { chats, first } = await listed(host, notices);
  await chats.remove([first]);
  expect(chats.list[0]?.id).toBe(first.id);
  expect(notices.list.map(({ text }) => text)).toEqual(["The disk is full."]);
});

test("an empty or unchanged title is no renaming", async () => {
  const host = new FakeHost();
  const rename = vi.spyOn(host, "renameChat");
  const { chats, first } = await listed(host, new Notices());
  await chats.rename(first.id, "   ");
  await chats.rename(first.id, ` ${first.title} `);
  expect(rename).not.toHaveBeenCalled();
  await chats.rename(first.id, " Interest ");
  expect(chats.find(first.id)?.title).toBe("Interest");
  expect(await chats.rename(first.id, "x".repeat(1_000_000))).toBe(false);
  expect(chats.find(first.id)?.title).toBe("Interest");
});

test("a title cannot be reordered, and keeps its emoji and its script", () => {
  const chats = new Chats(new FakeHost(), new Notices());
  chats.take([{ ...chat(1, at(17, 8)), title: "a\u202Erorre\u202C \u2764\uFE0F می\u200Cخواهم" }]);
  expect(chats.list[0]?.title).toBe("arorre \u2764\uFE0F می\u200Cخواهم");
});

test("a temporary chat without a message is nowhere in a list", async () => {
  const { app } = await start();
  const before = app.chats.listed.length;
  await app.navigation.newTemporaryChat();
  expect(app.chats.list).toHaveLength(before + 1);
  expect(app.chats.listed).toHaveLength(before);
  app.palette.open();
  expect(
    app.palette.rows.flatMap((row) => (row.type === "chat" ? [row.chat.title] : [])),
  ).not.toContain("");
  app.navigation.startOver();
  expect(app.notices.list).toEqual([]);
});

test("a renaming that is answered late does not bring the spinner back", async () => {
  const { app, host } = await start();
  app.composer.write("Tell me a story");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(200);
  const { chat } = app.conversation;
  if (chat === null) throw new Error("no chat");
  expect(app.chats.find(chat)?.writing).toBe(true);
  const rename = host.renameChat.bind(host);
  host.renameChat = async (...given) => {
    const answer = await rename(...given);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
    return answer;
  };
  const renamed = app.chats.rename(chat, "Other");
  await vi.advanceTimersByTimeAsync(61_000);
  await renamed;
  expect(app.chats.find(chat)).toMatchObject({ writing: false, title: "Other" });
});
