import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FakeHost } from "../host/fake/fake";
import { big, bundledModel, loading, ready } from "../host/fake/library";
import { openFirst, sends, start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Delays the response to a sent message by this many milliseconds. */
function delay(host: FakeHost, ms: number): void {
  const send = host.send.bind(host);
  host.send = async (...given) => {
    const answer = await send(...given);
    await new Promise((resolve) => setTimeout(resolve, ms));
    return answer;
  };
}

test("sending empties the box; a refused message stays in it", async () => {
  const { app } = await start();
  app.composer.write("Tell me a story");
  await app.sending.send();
  expect(app.composer.text).toBe("");
  await vi.advanceTimersByTimeAsync(20_000);
  app.composer.write("refuse this");
  await app.sending.send();
  expect(app.composer.text).toBe("refuse this");
});

test("what is sent while the model loads asks for thinking, as the switch shows", async () => {
  const { app, host } = await start({ model: loading(big, 0.42) });
  expect(app.thinking.on).toBe(true);
  expect(app.thinking.possible).toBe(true);
  app.composer.write("Why is the sky blue?");
  await app.sending.send();
  expect(sends(host)).toEqual([["send", null, "Why is the sky blue?", true]]);
});

test("what is typed while a message is on its way stays, and is the next draft", async () => {
  const { app, host } = await start();
  delay(host, 120);
  app.composer.write("Hello");
  const sent = app.sending.send();
  await vi.advanceTimersByTimeAsync(60);
  app.composer.write("and one more thing");
  await vi.advanceTimersByTimeAsync(1000);
  await sent;
  expect(app.composer.text).toBe("and one more thing");
  expect(host.library.chats.get(app.conversation.chat ?? 0)?.draft.text).toBe("and one more thing");
  app.navigation.newChat();
  expect(app.composer.text).toBe("");
});

test("a refused message comes back before what was typed since", async () => {
  const { app, host } = await start();
  host.send = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    throw { code: "store", message: "The disk is full." };
  };
  app.composer.write("Hello");
  const sent = app.sending.send();
  await vi.advanceTimersByTimeAsync(50);
  app.composer.write("and one more thing");
  await vi.advanceTimersByTimeAsync(100);
  await sent;
  expect(app.composer.text).toBe("Hello\n\nand one more thing");
  expect(app.notices.list.at(-1)?.text).toBe("The disk is full.");
});

test("who leaves while a message is on its way does not find it again as a draft", async () => {
  const { app, host } = await start();
  const [first, second] = await openFirst(app);
  delay(host, 60);
  app.composer.write("Hello");
  const sent = app.sending.send();
  await app.navigation.open(second);
  await vi.advanceTimersByTimeAsync(1000);
  await sent;
  expect(app.composer.text).toBe("");
  await app.navigation.open(first);
  expect(app.conversation.entries.some((entry) => entry.text === "Hello")).toBe(true);
  expect(app.composer.text).toBe("");
});

test("who leaves a new chat while its first message is on its way finds the next new chat empty", async () => {
  const { app, host } = await start();
  const [first] = app.chats.list;
  if (!first) throw new Error("no chats");
  delay(host, 60);
  app.composer.write("Hello");
  const sent = app.sending.send();
  await app.navigation.open(first.id);
  await vi.advanceTimersByTimeAsync(1000);
  await sent;
  app.navigation.newChat();
  expect(app.composer.text).toBe("");
});

test("what is typed after a message and left in its chat is not lost when the message is refused", async () => {
  const { app, host } = await start();
  const [first, second] = await openFirst(app);
  host.send = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    throw { code: "store", message: "The disk is full." };
  };
  app.composer.write("Hello");
  const sent = app.sending.send();
  app.composer.write("and one more thing");
  await app.navigation.open(second);
  await vi.advanceTimersByTimeAsync(1000);
  await sent;
  expect(app.composer.text).toBe("");
  await app.navigation.open(first);
  expect(app.composer.text).toBe("Hello\n\nand one more thing");
});

test("what is typed in another chat while a message makes a new one stays in that chat", async () => {
  const { app, host } = await start();
  const [first] = await openFirst(app);
  app.navigation.newChat();
  app.composer.write("Tell me a story");
  const sent = app.sending.send();
  await app.navigation.open(first);
  app.composer.write("for the first chat");
  await sent;
  await vi.advanceTimersByTimeAsync(1000);
  const drafts = host.calls.filter(([verb]) => verb === "saveDraft");
  expect(drafts.at(-1)).toEqual(["saveDraft", first, "for the first chat"]);
});

test("while another chat opens, nothing is sent, and a new chat stays", async () => {
  const { app, host } = await start();
  const [, second] = await openFirst(app);
  const openChat = host.openChat.bind(host);
  host.openChat = async (id) => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return openChat(id);
  };
  app.composer.write("Hello");
  const opened = app.navigation.open(second);
  void app.sending.send();
  expect(app.composer.text).toBe("Hello");
  app.navigation.newChat();
  await vi.advanceTimersByTimeAsync(200);
  await opened;
  expect(app.conversation.chat).toBeNull();
  expect(sends(host)).toEqual([]);
});

test("an answer can be stopped from another branch of its chat, and nothing is sent meanwhile", async () => {
  const { app, host } = await start({ rate: 5 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(600_000);
  const { last, chat } = app.conversation;
  if (!last || chat === null) throw new Error("no answer");
  await app.conversation.regenerate(last, false);
  await vi.advanceTimersByTimeAsync(1000);
  await app.navigation.open(chat, last.id);
  expect(app.conversation.entries.some((entry) => entry.writing)).toBe(false);
  expect(app.conversation.writing).toBe(true);
  app.composer.write("And another");
  await app.sending.send();
  expect(sends(host)).toHaveLength(1);
  const stop = vi.spyOn(host, "stop");
  await app.conversation.stop();
  expect(stop).toHaveBeenCalledWith(chat);
  expect(app.conversation.writing).toBe(false);
});

test("a message that stayed in writing without an answer does not block its chat", async () => {
  const { app, host } = await start();
  const [first, second] = await openFirst(app);
  const { last } = app.conversation;
  if (!last) throw new Error("no answer");
  const stuck = host.library.find(last.id);
  if (!stuck) throw new Error("no message");
  stuck.message.state = "writing";
  await app.navigation.open(second);
  await app.navigation.open(first);
  app.composer.write("Hello");
  await app.sending.send();
  expect(sends(host)).toHaveLength(1);
});

test("a model that cannot think is not asked to", async () => {
  const { app, host } = await start({ model: ready(bundledModel) });
  app.composer.write("Hello");
  await app.sending.send();
  expect(sends(host)[0]).toEqual(["send", null, "Hello", false]);
});
