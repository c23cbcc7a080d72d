import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Dialogs } from "./dialogs.svelte";
import { Notices } from "./notices.svelte";

test("an address is opened only once it was confirmed", async () => {
  const host = new FakeHost();
  const dialogs = new Dialogs(host, new Notices());
  dialogs.link = "https://a.example/";
  expect(host.calls).toEqual([]);
  await dialogs.openLink();
  expect(host.calls).toEqual([["openLink", "https://a.example/"]]);
  expect(dialogs.link).toBeNull();
  await dialogs.openLink();
  expect(host.calls).toHaveLength(1);
});

test("each of the dialogs is open until it is closed", () => {
  const dialogs = new Dialogs(new FakeHost(), new Notices());
  expect(dialogs.open).toBe(false);
  dialogs.settingsPage = "About";
  expect(dialogs.open).toBe(true);
  dialogs.settingsPage = null;
  dialogs.link = "https://a.example/";
  expect(dialogs.open).toBe(true);
  dialogs.link = null;
  dialogs.paste = { name: "Pasted text", text: "", remove: () => undefined };
  expect(dialogs.open).toBe(true);
  dialogs.paste = null;
  expect(dialogs.open).toBe(false);
});
