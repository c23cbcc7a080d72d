import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { NetworkCheck, ProcessSockets } from "../host/host";
import { Notices } from "./notices.svelte";
import { Privacy } from "./privacy.svelte";

const of = async (check: NetworkCheck): Promise<Privacy> => {
  const host = new FakeHost();
  host.checkNetwork = () => Promise.resolve(check);
  const privacy = new Privacy(host, new Notices());
  expect(privacy.connections).toBeNull();
  await privacy.check();
  return privacy;
};

const process: ProcessSockets = {
  pid: 10,
  name: "goldcrest",
  role: "app",
  readable: true,
  network: [],
  local: 3,
  kernel: 0,
  unconnected: 0,
};

test("the connections of the app are counted, without those of a download and of the local API", async () => {
  const fetch = { ...process, role: "download" as const, network: ["TCP"] };
  const web = { ...process, network: ["TCP", "UDP"] };
  const count = async (...processes: ProcessSockets[]): Promise<number | null> =>
    (await of({ type: "counted", processes })).connections;
  expect(await count(process, fetch)).toBe(0);
  expect(await count(process, web, fetch)).toBe(2);
  expect(await count(process, { ...process, readable: false })).toBeNull();
  const served = ["TCP, listens on 127.0.0.1:8484", "TCP [::1]:8484 to [::1]:51234"];
  const api = { ...process, role: "api" as const, network: served };
  expect(await count(process, api)).toBe(0);
  expect(await count(process, { ...api, role: "other" })).toBe(2);
  const elsewhere = ["TCP, listens on 0.0.0.0:8484", "TCP 10.0.0.7:8484 to 10.0.0.9:51234"];
  expect(await count(process, { ...api, network: [...served, ...elsewhere] })).toBe(2);
  expect((await of({ type: "notShown", system: "macos" })).connections).toBeNull();
});
