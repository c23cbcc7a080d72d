import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FakeHost } from "../host/fake/fake";
import { App } from "./app.svelte";
import { sends, start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Sends a question, and queues a second one while the first is answered. */
async function queued(app: App): Promise<number> {
  await app.sending.send();
  app.composer.write("Tell me a story");
  await app.sending.send();
  app.composer.write("And another");
  await app.sending.send();
  const { chat } = app.conversation;
  if (chat === null) throw new Error("no chat");
  expect(app.queue.of(chat).map(({ text }) => text)).toEqual(["And another"]);
  expect(app.composer.text).toBe("");
  return chat;
}

test("a message that is sent while an answer is written waits for its end", async () => {
  const { app, host } = await start();
  const chat = await queued(app);
  expect(sends(host)).toHaveLength(1);
  expect(host.library.chats.get(chat)?.draft.queue).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(sends(host)).toHaveLength(2);
  expect(app.queue.of(chat)).toEqual([]);
  expect(host.library.chats.get(chat)?.draft.queue).toEqual([]);
  expect(app.conversation.entries.map(({ role }) => role)).toHaveLength(4);
});

test("a message waits in a chat that was left, and is sent from there", async () => {
  const { app, host } = await start();
  const chat = await queued(app);
  app.navigation.newChat();
  app.composer.write("Something else");
  await vi.advanceTimersByTimeAsync(20_000);
  expect(sends(host).at(-1)).toEqual(["send", chat, "And another", true]);
  expect(app.queue.of(chat)).toEqual([]);
  expect(app.conversation.chat).toBe(null);
  expect(app.composer.text).toBe("Something else");
});

test("after a stop or a failure a message goes on waiting, and can be sent or edited", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  await app.conversation.stop();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(sends(host)).toHaveLength(1);
  const again = new App(host);
  await again.start();
  expect(again.queue.of(chat).map(({ text }) => text)).toEqual(["And another"]);
  const [message] = again.queue.of(chat);
  if (!message) throw new Error("nothing waits");
  again.composer.write("what is typed");
  again.sending.editQueued(chat, message);
  expect(again.composer.text).toBe("And another\n\nwhat is typed");
  expect(again.queue.of(chat)).toEqual([]);
  await app.sending.sendQueued(chat);
  expect(sends(host)).toHaveLength(2);
});

test("a message that waits is sent once, though its chat is left while it is on its way", async () => {
  const { app, host } = await start();
  const chat = await queued(app);
  app.composer.write("And a last one");
  await app.sending.send();
  const real = host.sendQueued.bind(host);
  let isLeft = false;
  host.sendQueued = async (...sent) => {
    const view = await real(...sent);
    if (!isLeft) app.navigation.newChat();
    isLeft = true;
    return view;
  };
  await vi.advanceTimersByTimeAsync(60_000);
  expect(isLeft).toBe(true);
  expect(sends(host).slice(1)).toEqual([
    ["send", chat, "And another", true],
    ["send", chat, "And a last one", true],
  ]);
  expect(app.queue.of(chat)).toEqual([]);
});

test("a message that is refused when its turn comes goes on waiting, before the others", async () => {
  const { app, host } = await start();
  const chat = await queued(app);
  host.sendQueued = () => {
    void app.queue.add(chat, { text: "And a last one", pastes: [], thinking: true });
    return Promise.reject({ code: "other", message: "No." });
  };
  await vi.advanceTimersByTimeAsync(20_000);
  const waiting = ["And another", "And a last one"];
  expect(app.queue.of(chat).map(({ text }) => text)).toEqual(waiting);
  const kept = host.library.chats.get(chat)?.draft.queue;
  expect(kept?.map(({ text }) => text)).toEqual(waiting);
});

test("what waits no more is forgotten on a full disk too, once there is room", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  const [message] = app.queue.of(chat);
  if (!message) throw new Error("nothing waits");
  host.full = true;
  app.queue.remove(chat, message);
  await vi.advanceTimersByTimeAsync(10);
  expect(host.library.chats.get(chat)?.draft.queue).toHaveLength(1);
  host.full = false;
  await vi.advanceTimersByTimeAsync(4000);
  expect(host.library.chats.get(chat)?.draft.queue).toEqual([]);
});

test("a message that the host refuses to keep stays in the box", async () => {
  const { app, host } = await start({ rate: 5 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  host.full = true;
  app.composer.write("And another");
  await app.sending.send();
  expect(app.composer.text).toBe("And another");
  expect(app.queue.of(app.conversation.chat)).toEqual([]);
});

test("a message waits as it was to be sent, and is edited so", async () => {
  const { app } = await start({ rate: 5 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  app.thinking.wanted = false;
  app.composer.write("And another");
  await app.sending.send();
  app.thinking.wanted = true;
  const { chat } = app.conversation;
  const [message] = app.queue.of(chat);
  if (chat === null || !message) throw new Error("nothing waits");
  app.sending.editQueued(chat, message);
  expect(app.thinking.wanted).toBe(false);
});

test("after an answer that reached its limit the next message is sent", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  const answer = app.conversation.last;
  await app.conversation.stop();
  await vi.advanceTimersByTimeAsync(1000);
  const found = host.library.find(answer?.id ?? 0);
  if (!found) throw new Error("no answer");
  expect(sends(host)).toHaveLength(1);
  const message = { ...found.message, state: "limit" as const, siblings: [found.message.id] };
  host.emit({ type: "ended", chat, message });
  await vi.advanceTimersByTimeAsync(100);
  expect(sends(host)).toHaveLength(2);
});

test("while another answer is written in its chat a message goes on waiting", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  await app.sending.sendQueued(chat);
  expect(sends(host)).toHaveLength(1);
  expect(app.queue.of(chat)).toHaveLength(1);
});

test("queues are saved one after the other, the newest last", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  const save = host.saveQueue.bind(host);
  let waits = 300;
  host.saveQueue = async (...sent) => {
    await new Promise((resolve) => setTimeout(resolve, (waits -= 100)));
    return save(...sent);
  };
  void app.queue.add(chat, { text: "Two", pastes: [], thinking: true });
  void app.queue.add(chat, { text: "Three", pastes: [], thinking: true });
  await vi.advanceTimersByTimeAsync(2000);
  const kept = host.library.chats.get(chat)?.draft.queue.map(({ text }) => text);
  expect(kept).toEqual(["And another", "Two", "Three"]);
});

test("what is known of a queue here is newer than what the host says", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  app.navigation.newChat();
  host.full = true;
  const [message] = app.queue.of(chat);
  if (message) app.queue.remove(chat, message);
  await app.navigation.open(chat);
  expect(app.queue.of(chat)).toEqual([]);
});

test("a message that waits is sent though its chat is being opened again as the answer ends", async () => {
  const { app, host } = await start();
  const chat = await queued(app);
  const real = host.openChat.bind(host);
  host.openChat = async (id) => {
    const view = await real(id);
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    return view;
  };
  void app.navigation.open(chat);
  await vi.advanceTimersByTimeAsync(19_000);
  expect(sends(host)).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(21_000);
  expect(sends(host)).toHaveLength(2);
  expect(app.queue.of(chat)).toEqual([]);
});

test("a stop that was refused does not have the next one send what waits", async () => {
  const { app, host } = await start({ rate: 5 });
  const chat = await queued(app);
  const stop = vi.spyOn(host, "stop").mockRejectedValueOnce({ code: "other", message: "No." });
  await app.sending.sendNow(chat);
  stop.mockRestore();
  await app.conversation.stop();
  await vi.advanceTimersByTimeAsync(1000);
  expect(sends(host)).toHaveLength(1);
  expect(app.queue.of(chat)).toHaveLength(1);
});

/** Sent messages except the first. */
const others = (host: FakeHost): unknown[] =>
  sends(host)
    .slice(1)
    .map((sent) => (sent as unknown[])[2]);

test("a message that is sent just as an answer ends waits behind those that wait", async () => {
  const { app, host } = await start();
  await queued(app);
  const emit = host.emit.bind(host);
  let isSent = false;
  host.emit = (event) => {
    emit(event);
    if (isSent || event.type !== "chatChanged" || event.chat.writing) return;
    isSent = true;
    app.composer.write("And a last one");
    void app.sending.send();
  };
  await vi.advanceTimersByTimeAsync(60_000);
  expect(others(host)).toEqual(["And another", "And a last one"]);
});

test("a message waits behind one that is still being saved as the answer ends", async () => {
  const { app, host } = await start();
  const save = host.saveQueue.bind(host);
  host.saveQueue = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 20_000));
    return save(...given);
  };
  app.composer.write("Tell me a story");
  await app.sending.send();
  app.composer.write("And another");
  void app.sending.send();
  await vi.advanceTimersByTimeAsync(15_000);
  expect(app.conversation.writing).toBe(false);
  app.composer.write("And a last one");
  void app.sending.send();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(others(host)).toEqual(["And another", "And a last one"]);
});

test("what is sent right after a stop is sent though its chat is left, and what waited before it first", async () => {
  const { app, host } = await start({ rate: 5 });
  await queued(app);
  const stop = host.stop.bind(host);
  host.stop = (id) => (setTimeout(() => void stop(id), 100), Promise.resolve(null));
  await app.conversation.stop();
  app.composer.write("And a last one");
  await app.sending.send();
  app.navigation.newChat();
  await vi.advanceTimersByTimeAsync(120_000);
  expect(others(host)).toEqual(["And another", "And a last one"]);
});

test("after a stop that was refused a message waits as ever, and so it does after a later one", async () => {
  const { app, host } = await start({ rate: 5 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  const stop = vi.spyOn(host, "stop").mockRejectedValueOnce({ code: "other", message: "No." });
  await app.conversation.stop();
  stop.mockRestore();
  app.composer.write("And another");
  await app.sending.send();
  await app.conversation.stop();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(others(host)).toEqual([]);
});

test("a message that is refused after its chat was deleted leaves the others as the host has them", async () => {
  const { app } = await start();
  const chat = await queued(app);
  let refuse = (): void => {};
  const sending = app.queue.send(chat, async () => {
    await new Promise<void>((resolve) => (refuse = resolve));
    return false;
  });
  await vi.advanceTimersByTimeAsync(0);
  app.queue.forget([chat]);
  refuse();
  await sending;
  const [first, second] = ["And another", "And a third"];
  app.queue.take(chat, [
    { text: first, pastes: [], thinking: true },
    { text: second, pastes: [], thinking: true },
  ]);
  expect(app.queue.of(chat).map(({ text }) => text)).toEqual([first, second]);
});
