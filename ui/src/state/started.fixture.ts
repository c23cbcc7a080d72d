import { FakeHost, type Script } from "../host/fake/fake";
import { App } from "./app.svelte";

/** An app that has started over a scripted host whose answers come soon. */
export async function start(script: Script = {}): Promise<{ app: App; host: FakeHost }> {
  const host = new FakeHost({ readingMs: 50, rate: 400, ...script });
  const app = new App(host);
  await app.start();
  return { app, host };
}

/** The messages that were sent. */
export const sends = (host: FakeHost): unknown[] => host.calls.filter(([verb]) => verb === "send");
