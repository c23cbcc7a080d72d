import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Notices } from "./notices.svelte";
import { Search } from "./search.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("the title of a hit cannot be reordered", async () => {
  const host = new FakeHost();
  const hit = {
    chat: 1,
    message: 2,
    title: "good\u202Efugg.exe",
    inThinking: false,
    snippet: "",
    at: 0,
  };
  host.search = () => Promise.resolve([hit]);
  const search = new Search(host, new Notices());
  search.ask("good");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.hits[0]?.title).toBe("goodfugg.exe");
});

test("a search begins after a pause, once", async () => {
  const host = new FakeHost();
  const ask = vi.spyOn(host, "search");
  const search = new Search(host, new Notices());
  for (const query of ["b", "bi", "bird"]) search.ask(query);
  await vi.advanceTimersByTimeAsync(100);
  expect(ask.mock.calls).toEqual([["bird"]]);
});

test("a cleared search forgets its answer, so that the same words are not said to be nowhere", async () => {
  const search = new Search(new FakeHost(), new Notices());
  search.ask("bird");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.hits.length).toBeGreaterThan(0);
  search.ask("");
  expect(search.hits).toEqual([]);
  search.ask("bird");
  expect(search.answered).not.toBe("bird");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.answered).toBe("bird");
});
