import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost, type Script } from "../host/fake/fake";
import { big, starter } from "../host/fake/library";
import { App } from "./app.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

async function start(script: Script = {}): Promise<{ app: App; host: FakeHost }> {
  const host = new FakeHost({ readingMs: 50, rate: 400, ...script });
  const app = new App(host);
  await app.start();
  return { app, host };
}

const sends = (host: FakeHost): unknown[] => host.calls.filter(([verb]) => verb === "send");

test("the start takes over what the host knows", async () => {
  const { app } = await start({ settings: { thinking: false } });
  expect(app.firstStart).toBe(false);
  expect(app.chats.list.length).toBeGreaterThan(5);
  expect(app.model.status).toEqual(big);
  expect(app.composer.thinking).toBe(false);
});

test("the first start is over with the first message", async () => {
  const { app } = await start({ firstStart: true, filled: false });
  expect(app.firstStart).toBe(true);
  app.composer.write("Hello");
  await app.send();
  app.newChat();
  expect(app.firstStart).toBe(false);
});

test("an event that comes before the snapshot is not lost", async () => {
  const host = new FakeHost({ model: { ...big, state: "loading" } });
  const snapshot = host.snapshot.bind(host);
  host.snapshot = async () => {
    const taken = await snapshot();
    host.emit({ type: "model", status: big });
    return taken;
  };
  const app = new App(host);
  await app.start();
  expect(app.model.status.state).toBe("ready");
});

test("sending empties the box; a refused message stays in it", async () => {
  const { app } = await start();
  app.composer.write("Tell me a story");
  await app.send();
  expect(app.composer.text).toBe("");
  await vi.advanceTimersByTimeAsync(20_000);
  app.composer.write("refuse this");
  await app.send();
  expect(app.composer.text).toBe("refuse this");
});

test("nothing is sent while an answer is being written, or from an empty box", async () => {
  const { app, host } = await start();
  await app.send();
  app.composer.write("Tell me a story");
  await app.send();
  app.composer.write("And another");
  await app.send();
  expect(sends(host)).toHaveLength(1);
  expect(app.composer.text).toBe("And another");
});

test("a model that cannot think is not asked to", async () => {
  const { app, host } = await start({ model: { ...starter, canThink: false } });
  app.composer.write("Hello");
  await app.send();
  expect(sends(host)[0]).toEqual(["send", null, "Hello", false]);
});

test("the thinking switch follows the chat that is open", async () => {
  const { app } = await start();
  app.composer.thinking = false;
  app.composer.write("Tell me a story");
  await app.send();
  const quiet = app.conversation.chat;
  app.newChat();
  expect(app.composer.thinking).toBe(true);
  if (quiet !== null) await app.openChat(quiet);
  expect(app.composer.thinking).toBe(false);
});

test("deleting the open chat leaves an empty window", async () => {
  const { app } = await start();
  const [first] = app.chats.list;
  if (!first) throw new Error("no chats");
  await app.openChat(first.id);
  expect(app.conversation.entries.length).toBeGreaterThan(0);
  await app.removeChat(first);
  expect(app.conversation.entries).toEqual([]);
  expect(app.conversation.chat).toBeNull();
});

test("a bad file's reason is shown until it is put aside, and again for the next one", async () => {
  const { app, host } = await start();
  const error = { code: "bad-model", message: "a.gguf ends early." } as const;
  host.emit({ type: "model", status: { ...starter, error } });
  expect(app.model.fault?.message).toBe("a.gguf ends early.");
  app.model.dismissFault();
  expect(app.model.fault).toBeNull();
  host.emit({ type: "model", status: starter });
  host.emit({ type: "model", status: { ...starter, error } });
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
  expect(app.search.hits.every((hit) => hit.snippet.includes("photos"))).toBe(true);
});

test("settings change at once and are saved once", async () => {
  const { app, host } = await start();
  app.preferences.sample({ temperature: 0.2 });
  app.preferences.sample({ temperature: 0.3 });
  app.preferences.change({ theme: "dark" });
  expect(app.preferences.value.sampling.temperature).toBe(0.3);
  await vi.advanceTimersByTimeAsync(1000);
  const saved = host.calls.filter(([verb]) => verb === "saveSettings");
  expect(saved).toHaveLength(1);
  expect(saved[0]?.[1]).toMatchObject({
    theme: "dark",
    sampling: { temperature: 0.3, topP: 0.95 },
  });
});

test("an address is opened only once it was confirmed", async () => {
  const { app, host } = await start();
  app.link = "https://a.example/";
  expect(host.calls).toEqual([]);
  await app.openLink();
  expect(host.calls).toEqual([["openLink", "https://a.example/"]]);
  expect(app.link).toBeNull();
});
