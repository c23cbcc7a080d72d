import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { WireError } from "../host/host";
import { App } from "./app.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const full: WireError = { code: "disk-full", message: "The disk is full." };

/** An app whose drafts cannot be saved. */
async function onFullDisk(): Promise<{ app: App; host: FakeHost; saved: string[] }> {
  const host = new FakeHost();
  const saved: string[] = [];
  host.full = true;
  host.saveDraft = (_, text) => {
    if (host.full) return Promise.reject(full);
    saved.push(text);
    return Promise.resolve(null);
  };
  const app = new App(host);
  await app.start();
  return { app, host, saved };
}

test("a full disk is shown until there is room, and the draft is then saved", async () => {
  const { app, host, saved } = await onFullDisk();
  app.composer.write("Not to be lost");
  await vi.advanceTimersByTimeAsync(500);
  expect(app.disk.full).toBe(true);
  expect(app.notices.list).toEqual([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(app.disk.full).toBe(true);
  expect([app.composer.text, saved]).toEqual(["Not to be lost", []]);

  host.full = false;
  await vi.advanceTimersByTimeAsync(3000);
  expect(app.disk.full).toBe(false);
  expect(saved).toEqual(["Not to be lost"]);
});

test("a draft that could not be saved is there again, and is saved from wherever one is", async () => {
  const { app, host, saved } = await onFullDisk();
  const [first, second] = app.chats.list;
  if (!first || !second) throw new Error("no chats");
  await app.openChat(first.id);
  app.composer.write("Not to be lost");
  await app.openChat(second.id);
  expect(app.composer.text).toBe("");
  await app.openChat(first.id);
  expect(app.composer.text).toBe("Not to be lost");
  await app.openChat(second.id);
  host.full = false;
  await vi.advanceTimersByTimeAsync(4000);
  expect(saved).toEqual(["Not to be lost"]);
});

test("a message that is refused for want of room comes back into the box", async () => {
  const { app, host } = await onFullDisk();
  host.send = () => Promise.reject(full);
  app.composer.write("Not to be lost");
  await app.send();
  expect(app.disk.full).toBe(true);
  expect(app.composer.text).toBe("Not to be lost");
});

test("an answer that could not be saved shows that the disk is full; other failures do not", async () => {
  const { app, host } = await onFullDisk();
  const chat = (await host.snapshot()).chats[0]?.id ?? 0;
  const message = (await host.openChat(chat)).messages.at(-1);
  if (!message) throw new Error("no messages");
  const end = (error: WireError): void =>
    host.emit({ type: "ended", chat, message: { ...message, state: "failed", error } });
  end({ code: "store", message: "The database failed." });
  expect(app.disk.full).toBe(false);
  end(full);
  expect(app.disk.full).toBe(true);
});
