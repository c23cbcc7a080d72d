import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { big, loading, ready } from "../host/fake/library";
import { App } from "./app.svelte";
import { openFirst, start } from "./started.fixture";

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
