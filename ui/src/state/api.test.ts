import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { ApiChange } from "../host/host";
import { Api } from "./api.svelte";
import { App } from "./app.svelte";
import { Notices } from "./notices.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

async function start(): Promise<{ app: App; host: FakeHost; api: Api }> {
  const host = new FakeHost();
  const app = new App(host);
  const started = app.start();
  await vi.advanceTimersByTimeAsync(200);
  await started;
  return { app, host, api: app.api };
}
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1000);

test("the first switching on makes a key, which is shown once", async () => {
  const { api, host } = await start();
  expect([api.state.on, api.state.hasKey, api.isOpen]).toEqual([false, false, false]);
  expect(await api.change({ on: true })).toBeNull();
  expect([api.state.status.kind, api.state.hasKey, api.isOpen]).toEqual(["starting", true, true]);
  const key = api.newKey;
  expect(key).toMatch(/^goldcrest-/u);
  await settled();
  expect(api.state.status).toMatchObject({ kind: "listening", running: 0, waiting: 0 });
  expect(api.baseUrl).toBe("http://127.0.0.1:8484/v1");
  api.dropKey();
  await api.change({ on: false });
  await api.change({ on: true });
  expect(api.newKey).toBeNull();
  await api.replaceKey();
  expect(api.newKey).not.toBe(key);
  expect(host.calls.filter(([name]) => name === "replaceApiKey")).toHaveLength(1);
});

test("a port in use is a failure of its own, and another one works", async () => {
  const { api } = await start();
  await api.change({ on: true, port: 9999 });
  await settled();
  expect(api.state).toMatchObject({ on: true, status: { kind: "failed" } });
  expect([api.isOpen, api.baseUrl]).toEqual([false, "http://127.0.0.1:9999/v1"]);
  await api.change({ port: 8485 });
  await settled();
  expect(api.state.status.kind).toBe("listening");
});

test("changes in a row keep each other, and a refused one changes nothing", async () => {
  const { api } = await start();
  const origins = ["https://example.org"];
  await Promise.all([
    api.change({ port: 8485 }),
    api.change({ origins }),
    api.change({ on: true }),
  ]);
  expect(api.state).toMatchObject({ on: true, port: 8485, origins });
  expect(await api.change({ port: 80 })).toBe("The port has to be between 1024 and 65535.");
  expect(api.state.port).toBe(8485);
});

test("a late reply does not replace the status of an event", async () => {
  const host = new FakeHost();
  const api = new Api(host, new Notices());
  const state = { ...api.state, on: true, port: 8485, hasKey: true };
  let answer: (change: ApiChange) => void = () => undefined;
  host.setApi = () => new Promise((resolve) => (answer = resolve));
  const changed = api.change({ on: true });
  const status = { kind: "failed", message: "It has ended." } as const;
  api.receive({ ...state, status });
  answer({ state: { ...state, status: { kind: "starting" } }, newKey: "key" });
  expect(await changed).toBeNull();
  expect([api.state.status, api.state.port, api.newKey]).toEqual([status, 8485, "key"]);
});

test("events of the host arrive", async () => {
  const { app, host } = await start();
  await app.api.change({ on: true });
  await settled();
  host.setApiRequests(2, 1);
  expect(app.api.state.status).toMatchObject({ running: 2, waiting: 1 });
});
