import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Composer } from "./composer.svelte";
import { Notices } from "./notices.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function stage(): { composer: Composer; drafts: () => unknown[] } {
  const host = new FakeHost();
  const composer = new Composer(host, new Notices());
  composer.start("");
  return { composer, drafts: () => host.calls.filter(([verb]) => verb === "saveDraft") };
}

test("a draft is saved after a pause, once", async () => {
  const { composer, drafts } = stage();
  for (const text of ["H", "He", "Hello"]) composer.write(text);
  await vi.advanceTimersByTimeAsync(100);
  expect(drafts()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([["saveDraft", null, "Hello"]]);
});

test("who leaves for another chat finds the draft again", () => {
  const { composer, drafts } = stage();
  composer.write("for a new chat");
  composer.move(7, "kept there");
  expect(composer.text).toBe("kept there");
  expect(drafts()).toEqual([["saveDraft", null, "for a new chat"]]);
  composer.move(null);
  expect(composer.text).toBe("for a new chat");
});

test("a sent message is no draft any more", async () => {
  const { composer, drafts } = stage();
  composer.write("Hello");
  await vi.advanceTimersByTimeAsync(1000);
  composer.sent(3);
  expect(composer.text).toBe("");
  expect(drafts().at(-1)).toEqual(["saveDraft", null, ""]);
  composer.write("more");
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts().at(-1)).toEqual(["saveDraft", 3, "more"]);
});

test("spaces alone are nothing to send", () => {
  const { composer } = stage();
  composer.write(" \n ");
  expect(composer.empty).toBe(true);
});
