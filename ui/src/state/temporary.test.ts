import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("a temporary chat is a chat of its own, whose draft goes where it does", async () => {
  const { app, host } = await start();
  app.composer.write("for a new chat");
  await app.navigation.newTemporaryChat();
  const temporary = app.conversation.chat;
  expect(app.current.chat).toMatchObject({ temporary: true, title: "" });
  expect(app.composer.text).toBe("");
  app.composer.write("a secret");
  app.navigation.newChat();
  expect(app.composer.text).toBe("for a new chat");
  const drafts = host.calls.filter(([verb]) => verb === "saveDraft");
  expect(drafts).toEqual([
    ["saveDraft", null, "for a new chat"],
    ["saveDraft", temporary, "a secret"],
  ]);
  const listed = app.list.rows.some((row) => row.kind === "chat" && row.chat.temporary);
  expect(listed, "nothing was said in it").toBe(false);
  await app.navigation.newTemporaryChat();
  expect([app.conversation.chat, app.composer.text]).toEqual([temporary, "a secret"]);
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(app.list.rows[0]).toMatchObject({ kind: "group", name: "Temporary" });
});

test("a temporary chat that is kept stays open, and so it does when that is undone", async () => {
  const { app } = await start();
  await app.navigation.newTemporaryChat();
  app.composer.write("Tell me a story");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(60_000);
  const { chat } = app.current;
  if (!chat) throw new Error("no chat");
  await app.navigation.keep(chat);
  expect(app.current.chat).toMatchObject({ temporary: false, title: "Tell me a story" });
  expect(app.conversation.entries).toHaveLength(2);
  expect(app.notices.list.at(-1)?.text).toBe("Kept “Tell me a story”");
  await app.history.undo();
  expect(app.conversation.chat).toBe(chat.id);
  expect(app.current.chat?.temporary).toBe(true);
  expect(app.notices.list.at(-1)?.text).toBe("Undone: kept “Tell me a story”");
  await app.history.redo();
  expect(app.current.chat).toMatchObject({ temporary: false, title: "Tell me a story" });
});

test("a kept chat goes on with what is written in it, and so does the temporary one once that is undone", async () => {
  const { app, host } = await start({ rate: 5 });
  await app.navigation.newTemporaryChat();
  app.composer.write("Tell me a story");
  await app.sending.send();
  app.composer.write("first");
  await app.sending.send();
  const temporary = app.current.chat;
  if (!temporary) throw new Error("no chat");
  await app.conversation.stop();
  app.composer.write("half");
  await app.navigation.keep(temporary);
  expect([app.composer.text, app.queue.of(app.conversation.chat).length]).toEqual(["half", 1]);
  const kept = app.conversation.chat ?? 0;
  for (const message of app.queue.of(kept)) app.queue.remove(kept, message);
  app.composer.write("another half");
  app.composer.flush();
  await vi.advanceTimersByTimeAsync(100);
  await app.history.undo();
  expect(app.conversation.chat).toBe(temporary.id);
  expect([app.composer.text, app.queue.of(temporary.id)]).toEqual(["another half", []]);
  const drafts = host.calls.filter(([verb]) => verb === "saveDraft");
  expect(drafts.at(-1)).toEqual(["saveDraft", kept, "another half"]);
});
