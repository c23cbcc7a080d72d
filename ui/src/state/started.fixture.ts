import { FakeHost, type Script } from "../host/fake/fake";
import { App } from "./app.svelte";

/** Starts an app on a scripted host with short delays. */
export async function start(script: Script = {}): Promise<{ app: App; host: FakeHost }> {
  const host = new FakeHost({ readingMs: 50, rate: 400, ...script });
  const app = new App(host);
  await app.start();
  return { app, host };
}

/** Calls of `send`. */
export const sends = (host: FakeHost): unknown[] => host.calls.filter(([verb]) => verb === "send");

/** Opens the first chat of the list, and returns its id and that of the second. */
export async function openFirst(app: App): Promise<[first: number, second: number]> {
  const [first, second] = app.chats.list;
  if (!first || !second) throw new Error("no chats");
  await app.navigation.open(first.id);
  return [first.id, second.id];
}
