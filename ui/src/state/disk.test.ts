import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { Failure } from "../host/host";
import { App } from "./app.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const full: Failure = { code: "disk-full", message: "The disk is full." };

/** Starts an app on a full disk, and collects the drafts that are saved nevertheless. */
async function onFullDisk(): Promise<{ app: App; host: FakeHost; drafts: () => unknown[] }> {
  const host = new FakeHost();
  host.full = true;
  const app = new App(host);
  await app.start();
  const drafts = (): unknown[] =>
    host.calls.flatMap(([name, , text]) => (name === "saveDraft" ? [text] : []));
  return { app, host, drafts };
}

test("a full disk is shown until there is room, and the draft is then saved", async () => {
  const { app, host, drafts } = await onFullDisk();
  app.composer.write("Not to be lost");
  await vi.advanceTimersByTimeAsync(500);
  expect(app.disk.full).toBe(true);
  expect(app.notices.list).toEqual([]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(app.disk.full).toBe(true);
  expect([app.composer.text, drafts()]).toEqual(["Not to be lost", []]);

  host.full = false;
  await vi.advanceTimersByTimeAsync(3000);
  expect(app.disk.full).toBe(false);
  expect(drafts()).toEqual(["Not to be lost"]);
  expect(host.calls.filter(([name]) => name.startsWith("save"))).toHaveLength(1);
});

test("where it is not known whether there is room, it is asked again", async () => {
  const { app, host } = await onFullDisk();
  host.hasRoom = () => Promise.reject(full);
  app.composer.write("Not to be lost");
  await vi.advanceTimersByTimeAsync(10_000);
  expect(app.disk.full).toBe(true);
  host.full = false;
  host.hasRoom = () => Promise.resolve(true);
  await vi.advanceTimersByTimeAsync(3000);
  expect(app.disk.full).toBe(false);
});

test("a draft that could not be saved is there again, and is saved from wherever one is", async () => {
  const { app, host, drafts } = await onFullDisk();
  const [first, second] = app.chats.list;
  if (!first || !second) throw new Error("no chats");
  await app.navigation.open(first.id);
  app.composer.write("Not to be lost");
  await app.navigation.open(second.id);
  expect(app.composer.text).toBe("");
  await app.navigation.open(first.id);
  expect(app.composer.text).toBe("Not to be lost");
  await app.navigation.open(second.id);
  host.full = false;
  await vi.advanceTimersByTimeAsync(4000);
  expect(drafts()).toEqual(["Not to be lost"]);
});

test("a message that is refused for want of room comes back into the box", async () => {
  const { app } = await onFullDisk();
  app.composer.write("Not to be lost");
  await app.sending.send();
  expect(app.disk.full).toBe(true);
  expect(app.composer.text).toBe("Not to be lost");
});

test("settings that were changed while the disk was full are saved once there is room", async () => {
  const { app, host } = await onFullDisk();
  app.preferences.change({ theme: "dark" });
  await vi.advanceTimersByTimeAsync(500);
  expect(app.disk.full).toBe(true);
  host.full = false;
  await vi.advanceTimersByTimeAsync(3000);
  expect((await host.snapshot()).settings.theme).toBe("dark");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(host.calls.filter(([verb]) => verb === "saveSettings")).toHaveLength(1);
});

test("an answer that could not be saved shows that the disk is full; other failures do not", async () => {
  const { app, host } = await onFullDisk();
  const chat = (await host.snapshot()).chats[0]?.id ?? 0;
  const message = (await host.openChat(chat)).messages.at(-1);
  if (!message) throw new Error("no messages");
  const end = (error: Failure): void =>
    host.emit({ type: "ended", chat, message: { ...message, state: "failed", error } });
  end({ code: "store", message: "The database failed." });
  expect(app.disk.full).toBe(false);
  end(full);
  expect(app.disk.full).toBe(true);
});

test("a disk that is found full again and again is asked about once at a time", async () => {
  const { app, host } = await onFullDisk();
  let asked = 0;
  host.hasRoom = () => Promise.resolve((asked += 1) > 100);
  for (let at = 0; at < 5; at++) {
    app.composer.write(`Draft ${at}`);
    await vi.advanceTimersByTimeAsync(500);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked).toBeLessThan(6);
});
