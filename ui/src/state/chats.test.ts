import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Library } from "../host/fake/library";
import type { ChatSummary } from "../host/host";
import { Chats, groupByDate } from "./chats.svelte";
import { Notices } from "./notices.svelte";

const now = new Date(2026, 10, 18, 9, 0);
const at = (day: number, hour: number, month = 10): number =>
  new Date(2026, month, day, hour).getTime() / 1000;

function chat(id: number, updatedAt: number): ChatSummary {
  return {
    id,
    title: `Chat ${id}`,
    createdAt: updatedAt,
    updatedAt,
    writing: false,
    continues: null,
  };
}

beforeEach(() => vi.useFakeTimers({ now }));
afterEach(() => vi.useRealTimers());

test("chats are grouped by the days of the calendar, not by hours", () => {
  const chats = [
    chat(1, at(18, 8)),
    chat(2, at(17, 23)),
    chat(3, at(17, 0)),
    chat(4, at(16, 23)),
    chat(5, at(12, 1)),
    chat(6, at(11, 23)),
    chat(7, at(3, 1, 2)),
  ];
  const groups = groupByDate(chats, now).map(({ name, chats }) => [
    name,
    chats.map(({ id }) => id),
  ]);
  expect(groups).toEqual([
    ["Today", [1]],
    ["Yesterday", [2, 3]],
    ["This week", [4, 5]],
    ["Older", [6, 7]],
  ]);
});

test("a chat that was written in comes first, and neighbours follow what is shown", () => {
  const chats = new Chats(new FakeHost(), new Notices());
  chats.take([chat(1, at(17, 8)), chat(2, at(18, 8)), chat(3, at(10, 8))]);
  expect(chats.list.map(({ id }) => id)).toEqual([2, 1, 3]);
  chats.put(chat(3, at(18, 9)));
  expect(chats.list.map(({ id }) => id)).toEqual([3, 2, 1]);
  expect(chats.neighbour(3, 1)?.id).toBe(2);
  expect(chats.neighbour(3, -1)).toBeUndefined();
  expect(chats.neighbour(1, 1)).toBeUndefined();
  expect(chats.neighbour(null, 1)?.id).toBe(3);
});

/** Chats that receive their events, as the application's do. */
async function listed(
  host: FakeHost,
  notices: Notices,
): Promise<{ chats: Chats; first: ChatSummary }> {
  const chats = new Chats(host, notices);
  await host.subscribe((event) => {
    if (event.type === "chatChanged") chats.put(event.chat);
    if (event.type === "chatRemoved") chats.drop(event.chat);
  });
  chats.take((await host.snapshot()).chats);
  const [first] = chats.list;
  if (!first) throw new Error("no chats");
  return { chats, first };
}

test("deleting can be undone, and says what was deleted", async () => {
  const host = new FakeHost();
  const notices = new Notices();
  const { chats, first } = await listed(host, notices);
  await chats.remove(first);
  expect(chats.find(first.id)).toBeUndefined();
  expect(host.library.chats.get(first.id)?.deleted).toBe(true);
  const [notice] = notices.list;
  expect(notice?.text).toContain(first.title);
  notice?.action?.run();
  await vi.advanceTimersByTimeAsync(1);
  expect(chats.list[0]?.id).toBe(first.id);
  expect(host.library.chats.get(first.id)?.deleted).toBe(false);
});

test("a chat that could not be deleted comes back", async () => {
  const host = new FakeHost();
  host.deleteChat = () => Promise.reject({ code: "store", message: "The disk is full." });
  const notices = new Notices();
  const { chats, first } = await listed(host, notices);
  await chats.remove(first);
  expect(chats.list[0]?.id).toBe(first.id);
  expect(notices.list[0]?.text).toBe("The disk is full.");
});

test("an empty or unchanged title is no renaming", async () => {
  const host = new FakeHost();
  const rename = vi.spyOn(host, "renameChat");
  const { chats, first } = await listed(host, new Notices());
  await chats.rename(first.id, "   ");
  await chats.rename(first.id, ` ${first.title} `);
  expect(rename).not.toHaveBeenCalled();
  await chats.rename(first.id, " Interest ");
  expect(chats.find(first.id)?.title).toBe("Interest");
});

test("a title cannot be reordered, and keeps its emoji and its script", () => {
  const chats = new Chats(new FakeHost(), new Notices());
  chats.take([{ ...chat(1, at(17, 8)), title: "a\u202Erorre\u202C \u2764\uFE0F می\u200Cخواهم" }]);
  expect(chats.list[0]?.title).toBe("arorre \u2764\uFE0F می\u200Cخواهم");
});

test("the scripted chats lie in the same groups at any hour", () => {
  for (const [hour, minute] of [
    [0, 1],
    [9, 0],
    [23, 59],
  ] as const) {
    const now = new Date(2026, 10, 18, hour, minute);
    const library = new Library(now.getTime() / 1000, true);
    const chats = [...library.chats.values()].map(({ summary }) => summary);
    const counts = groupByDate(chats, now).map(({ name, chats }) => [name, chats.length]);
    expect(counts).toEqual([
      ["Today", 2],
      ["Yesterday", 2],
      ["This week", 2],
      ["Older", 3],
    ]);
  }
});
