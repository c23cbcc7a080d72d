import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { App } from "./app.svelte";
import type { Entry } from "./entry.svelte";
import { shortcutFor } from "./shortcuts";
import { sends, start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A chat with an answered question. */
async function asked(app: App, text = "Tell me a story"): Promise<Entry> {
  app.composer.write(text);
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(20_000);
  const { last } = app.conversation;
  if (!last || last.writing) throw new Error("not answered");
  return last;
}

const undone = async (app: App): Promise<string | undefined> => {
  await app.history.undo();
  return app.notices.list.at(-1)?.text;
};

test("a deleted message goes with what follows, and comes back", async () => {
  const { app } = await start();
  await asked(app);
  await asked(app, "And another");
  const { entries } = app.conversation;
  const second = entries[2];
  if (!second) throw new Error("no second question");
  await app.deletion.deleteMessage(second);
  expect(app.conversation.entries).toEqual(entries.slice(0, 2));
  expect(app.notices.list.at(-1)?.text).toBe("Deleted the message");
  expect(await undone(app)).toBe("Restored “And another”");
  expect(app.conversation.entries.map(({ id }) => id)).toEqual(entries.map(({ id }) => id));
});

test("the first message of a chat can be deleted, and the chat goes on", async () => {
  const { app } = await start();
  await asked(app);
  const [question] = app.conversation.entries;
  const { chat } = app.conversation;
  if (question) await app.deletion.deleteMessage(question);
  expect([app.conversation.chat, app.conversation.entries]).toEqual([chat, []]);
  await asked(app, "Again");
  expect([app.conversation.chat, app.conversation.entries.length]).toEqual([chat, 2]);
});

test("a branch is copied into a chat of its own, which opens", async () => {
  const { app } = await start();
  const answer = await asked(app);
  await asked(app, "And another");
  const { chat } = app.conversation;
  await app.navigation.fork(answer);
  expect(app.conversation.chat).not.toBe(chat);
  expect(app.conversation.entries).toHaveLength(2);
  expect(app.current.chat?.title).toBe("Tell me a story (copy)");
  const copy = app.conversation.chat ?? 0;
  for (let times = 0; times < 2; times++) {
    expect(await undone(app)).toBe("Undone: made a new chat of “Tell me a story”");
    expect([app.conversation.chat, app.conversation.entries.length]).toEqual([chat, 4]);
    await app.history.redo();
    await app.navigation.open(copy);
  }
});

test("a complete answer goes on, and gets back what it had", async () => {
  const { app } = await start();
  const answer = await asked(app);
  const before = answer.text;
  await app.conversation.continue(answer);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(answer.text.length).toBeGreaterThan(before.length);
  expect(await undone(app)).toBe("Undone: continued an answer");
  expect([answer.text, answer.state]).toEqual([before, "done"]);
});

test("an edit is undone, with the answer that is being written to it", async () => {
  const { app } = await start();
  await asked(app);
  const [question] = app.conversation.entries;
  if (question) await app.conversation.edit(question, "Tell me a joke", true);
  expect(await undone(app)).toBe("Undone: edited “Tell me a story”");
  expect(app.conversation.entries[0]?.text).toBe("Tell me a story");
  expect(app.conversation.writing).toBe(false);
});

test("the answer is asked for only while the model thinks", async () => {
  const { app, host } = await start({ pauseAt: 6 });
  const key = { key: "Enter", ctrlKey: true, metaKey: false, shiftKey: false, altKey: false };
  app.composer.write("Tell me a story");
  await app.sending.send();
  expect(shortcutFor(key, app, false)).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1000);
  expect(app.conversation.pondering).toBe(true);
  app.composer.write("x");
  expect(shortcutFor(key, app, true)).toBeUndefined();
  app.composer.write("");
  shortcutFor(key, app, false)?.run(app, "");
  host.resume();
  await vi.advanceTimersByTimeAsync(20_000);
  const { last } = app.conversation;
  expect(last?.stats?.thinkingCut).toBe("answer-now");
  await app.conversation.answerNow();
  expect(host.calls.filter(([verb]) => verb === "answerNow")).toHaveLength(1);
});

test("what waits is sent at once in the place of the answer that is written", async () => {
  const { app, host } = await start({ rate: 20 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(1000);
  app.composer.write("Rather a poem");
  await app.sending.send();
  const { chat } = app.conversation;
  if (chat === null) throw new Error("no chat");
  await app.sending.sendNow(chat);
  await vi.advanceTimersByTimeAsync(100);
  expect(sends(host).at(-1)).toEqual(["send", chat, "Rather a poem", true]);
  expect(app.conversation.entries[1]?.state).toBe("stopped");
  // A later stop does not send the queue.
  app.composer.write("Third");
  await app.sending.send();
  await app.conversation.stop();
  await vi.advanceTimersByTimeAsync(100);
  expect(sends(host)).toHaveLength(2);
});

test("what the other mode costs is known before it is used", async () => {
  const { app } = await start();
  await asked(app);
  expect(app.thinking.reread).toBeNull();
  app.thinking.wanted = !app.thinking.wanted;
  expect(app.thinking.reread?.tokens).toBeGreaterThan(500);
});

test("a deleted message is listed in the bin, and comes back from there", async () => {
  const { app } = await start();
  const answer = await asked(app);
  const { chat } = app.conversation;
  await app.deletion.deleteMessage(answer);
  await app.list.show("bin");
  expect(app.list.deletedMessages).toMatchObject([
    { id: answer.id, chat, title: "Tell me a story", text: answer.text.slice(0, 200) },
  ]);
  const [deleted] = app.list.deletedMessages;
  if (!deleted) throw new Error("nothing is listed");
  await app.deletion.restoreMessage(deleted);
  expect(app.conversation.entries.map(({ id }) => id)).toContain(answer.id);
  expect(app.list.deletedMessages).toEqual([]);
  expect(await undone(app)).toBe("Undone: restored an answer");
  await vi.advanceTimersByTimeAsync(0);
  expect(app.list.deletedMessages).toHaveLength(1);
  expect(app.conversation.entries).toHaveLength(1);
});
