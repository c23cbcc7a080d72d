import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Layout } from "./layout.svelte";
import { Notices } from "./notices.svelte";
import { Search } from "./search.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("all that was found in a chat is listed when it is asked for", async () => {
  const host = new FakeHost();
  const hit = (message: number) => ({
    message,
    role: "user" as const,
    kind: "text" as const,
    snippet: `said ${message}`,
    at: message,
  });
  const chats = [1, 2].map((chat) => ({
    chat,
    title: "Birds",
    inTitle: false,
    at: 1,
    hits: [hit(3)],
    count: 2,
  }));
  host.search = () => Promise.resolve({ chats, more: true, indexing: false });
  host.searchChat = (query, id) =>
    Promise.resolve(query === "bird" && id === 2 ? [hit(3), hit(4)] : []);
  const search = new Search(host, new Notices(), new Layout());
  search.ask("bird");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.groups.map(({ more }) => more)).toEqual([1, 1]);
  expect(search.note).not.toBeNull();
  await search.unfold(2);
  expect(search.groups.map(({ lines, more }) => [lines.length, more])).toEqual([
    [1, 1],
    [2, 0],
  ]);
});

test("a search begins after a pause, once", async () => {
  const host = new FakeHost();
  const ask = vi.spyOn(host, "search");
  const search = new Search(host, new Notices(), new Layout());
  for (const query of ["b", "bi", "bird"]) search.ask(query);
  await vi.advanceTimersByTimeAsync(100);
  expect(ask.mock.calls).toEqual([["bird"]]);
});

test("a cleared search forgets its answer, so that the same words are not said to be nowhere", async () => {
  const search = new Search(new FakeHost(), new Notices(), new Layout());
  search.ask("bird");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.groups.length).toBeGreaterThan(0);
  search.ask("");
  expect(search.groups).toEqual([]);
  search.ask("bird");
  expect(search.answered).not.toBe("bird");
  await vi.advanceTimersByTimeAsync(100);
  expect(search.answered).toBe("bird");
});

test("searching brings the sidebar back", () => {
  const layout = new Layout();
  const search = new Search(new FakeHost(), new Notices(), layout);
  layout.toggleSidebar();
  search.focus();
  expect([layout.sidebarShown, search.focusRequested]).toEqual([true, true]);
});

test("search answers the newest question only", async () => {
  const host = new FakeHost();
  const answer = host.search.bind(host);
  host.search = async (query) => {
    if (query === "bird") await new Promise((resolve) => setTimeout(resolve, 500));
    return answer(query);
  };
  const search = new Search(host, new Notices(), new Layout());
  search.ask("bird");
  await vi.advanceTimersByTimeAsync(100);
  search.ask("photos");
  await vi.advanceTimersByTimeAsync(1000);
  expect(search.answered).toBe("photos");
  const found = search.groups.flatMap(({ title, lines }) => [
    title,
    ...lines.map(({ parts }) => parts),
  ]);
  const marked = found.flat().filter(({ hit }) => hit);
  expect(marked.length).toBeGreaterThan(0);
  expect(marked.every(({ text }) => text.toLowerCase() === "photos")).toBe(true);
});
