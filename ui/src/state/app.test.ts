import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { big, loading, bundledModel, ready } from "../host/fake/library";
import { App } from "./app.svelte";
import { sends, start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("the start takes over what the host knows", async () => {
  const { app } = await start({ settings: { thinking: false } });
  expect(app.firstStart).toBe(false);
  expect(app.chats.list.length).toBeGreaterThan(5);
  expect(app.model.open).toEqual(big);
  expect(app.thinking.wanted).toBe(false);
  expect(app.preferences.maxThreads).toBe(16);
});

test("the chat that was open is open again after the window was loaded again", async () => {
  const { app, host } = await start();
  const [first] = await openFirst(app);
  const again = new App(host);
  await again.start();
  expect(again.conversation.chat).toBe(first);
  expect(again.conversation.entries.length).toBeGreaterThan(0);
});

test("the draft of a new chat is there again at the next start", async () => {
  const { app, host } = await start();
  app.composer.write("Half a sen");
  app.flush();
  const again = new App(host);
  await again.start();
  expect(again.composer.text).toBe("Half a sen");
});

test("the first start is over with the first message", async () => {
  const { app } = await start({ firstStart: true, filled: false });
  expect(app.firstStart).toBe(true);
  app.composer.write("Hello");
  await app.sending.send();
  app.navigation.newChat();
  expect(app.firstStart).toBe(false);
});

test("an event that comes before the snapshot is not lost", async () => {
  const host = new FakeHost({ model: loading(big, 0) });
  const snapshot = host.snapshot.bind(host);
  host.snapshot = async () => {
    const taken = await snapshot();
    host.emit({ type: "model", model: ready(big) });
    return taken;
  };
  const app = new App(host);
  await app.start();
  expect(app.model.status.state).toBe("ready");
});

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

/** Delays the response to a request by this many milliseconds. */
function delay(host: FakeHost, verb: "send" | "renameChat", ms: number): void {
  const request = host[verb].bind(host) as (...given: unknown[]) => Promise<never>;
  host[verb] = async (...given: unknown[]) => {
    const answer = await request(...given);
    await new Promise((resolve) => setTimeout(resolve, ms));
    return answer;
  };
}

async function openFirst(app: App): Promise<[first: number, second: number]> {
  const [first, second] = app.chats.list;
  if (!first || !second) throw new Error("no chats");
  await app.navigation.open(first.id);
  return [first.id, second.id];
}

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
  delay(host, "send", 120);
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
  delay(host, "send", 60);
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
  delay(host, "send", 60);
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

test("a renaming that is answered late does not bring the spinner back", async () => {
  const { app, host } = await start();
  app.composer.write("Tell me a story");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(200);
  const { chat } = app.conversation;
  if (chat === null) throw new Error("no chat");
  expect(app.chats.find(chat)?.writing).toBe(true);
  delay(host, "renameChat", 60_000);
  const renamed = app.chats.rename(chat, "Other");
  await vi.advanceTimersByTimeAsync(61_000);
  await renamed;
  expect(app.chats.find(chat)).toMatchObject({ writing: false, title: "Other" });
});

test("what is not saved yet is saved when the window goes", async () => {
  const { app, host } = await start();
  app.preferences.change({ theme: "dark" });
  app.composer.write("Half a sen");
  app.flush();
  expect(host.calls.map(([verb]) => verb)).toEqual(["saveDraft", "saveSettings"]);
  await vi.advanceTimersByTimeAsync(1000);
  app.flush();
  expect(host.calls).toHaveLength(2);
});

test("screen readers hear of the open chat alone", async () => {
  const { app, host } = await start();
  const [, second] = await openFirst(app);
  const answer = host.library.chats.get(second)?.messages.at(-1);
  if (!answer) throw new Error("no answer");
  const ended = { type: "ended", chat: second, message: { ...answer, state: "stopped" } } as const;
  host.emit(ended);
  await vi.advanceTimersByTimeAsync(500);
  expect(app.announcer.spoken).toBe("");
  await app.navigation.open(second);
  host.emit(ended);
  await vi.advanceTimersByTimeAsync(500);
  expect(app.announcer.spoken).toBe("Stopped.");
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

test("a model that cannot think is not asked to", async () => {
  const { app, host } = await start({ model: ready(bundledModel) });
  app.composer.write("Hello");
  await app.sending.send();
  expect(sends(host)[0]).toEqual(["send", null, "Hello", false]);
});

test("a bad file's reason is shown until it is put aside, and again for the next one", async () => {
  const { app, host } = await start();
  const error = { code: "bad-model", message: "a.gguf ends early." } as const;
  host.emit({ type: "model", model: { ...ready(bundledModel), error } });
  expect(app.model.fault?.message).toBe("a.gguf ends early.");
  app.model.dismissFault();
  expect(app.model.fault).toBeNull();
  host.emit({ type: "model", model: ready(bundledModel) });
  host.emit({ type: "model", model: { ...ready(bundledModel), error } });
  expect(app.model.fault?.message).toBe("a.gguf ends early.");
});

test("search answers the newest question only", async () => {
  const { app, host } = await start();
  const search = host.search.bind(host);
  host.search = async (query) => {
    if (query === "bird") await new Promise((resolve) => setTimeout(resolve, 500));
    return search(query);
  };
  app.search.ask("bird");
  await vi.advanceTimersByTimeAsync(100);
  app.search.ask("photos");
  await vi.advanceTimersByTimeAsync(1000);
  expect(app.search.answered).toBe("photos");
  const found = app.search.groups.flatMap(({ title, lines }) => [
    title,
    ...lines.map(({ parts }) => parts),
  ]);
  const marked = found.flat().filter(({ hit }) => hit);
  expect(marked.length).toBeGreaterThan(0);
  expect(marked.every(({ text }) => text.toLowerCase() === "photos")).toBe(true);
});

test("settings change at once and are saved once", async () => {
  const { app, host } = await start();
  app.preferences.set("temperature", 0.2);
  app.preferences.set("temperature", 0.3);
  app.preferences.change({ theme: "dark" });
  expect(app.preferences.value.samplingChanges.temperature).toBe(0.3);
  await vi.advanceTimersByTimeAsync(1000);
  const saved = host.calls.filter(([verb]) => verb === "saveSettings");
  expect(saved).toHaveLength(1);
  expect(saved[0]?.[1]).toMatchObject({
    theme: "dark",
    samplingChanges: { temperature: 0.3, topP: null },
  });
});

test("that no copy of the chats was made stays on the screen until it is read", async () => {
  const { app, host } = await start();
  const message = "The file with your chats is damaged.";
  host.emit({ type: "copyFailed", error: { code: "store", message } });
  for (const each of ["one", "two", "three", "four"]) app.notices.show(each);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(app.notices.list).toMatchObject([{ text: message, tone: "error" }]);
  app.notices.dismiss(app.notices.list[0]?.id ?? 0);
  expect(app.notices.list).toEqual([]);
});
