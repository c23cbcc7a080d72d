import { expect, test } from "vitest";
import { Library } from "../host/fake/library";
import { type Row, rowsOf } from "./rows";
import { chat } from "./rows.fixture";

const now = new Date(2026, 10, 18, 9, 0);
const at = (day: number, hour: number, month = 10): number =>
  new Date(2026, month, day, hour).getTime() / 1000;

/** Names of groups and folders, and ids of chats. */
const shown = (rows: Row[]): (string | number)[] =>
  rows.map((row) =>
    row.kind === "chat" ? row.chat.id : row.kind === "folder" ? row.folder.name : row.name,
  );

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
  expect(shown(rowsOf(chats, [], now))).toEqual([
    "Today",
    1,
    "Yesterday",
    2,
    3,
    "This week",
    4,
    5,
    "Older",
    6,
    7,
  ]);
});

test("temporary and pinned chats come first, then folders, then the others by date", () => {
  const chats = [
    chat(8, at(18, 8), { temporary: true }),
    chat(1, at(18, 7)),
    chat(2, at(18, 6), { pinned: true, folder: 5 }),
    chat(3, at(18, 5), { folder: 5 }),
    chat(4, at(18, 4), { folder: 6 }),
    chat(5, at(18, 3), { archived: true }),
    chat(6, at(18, 2), { folder: 99 }),
  ];
  const folders = [
    { id: 6, name: "Home", collapsed: true },
    { id: 5, name: "Work", collapsed: false },
  ];
  const rows = rowsOf(chats, folders, now);
  expect(shown(rows)).toEqual([
    "Temporary",
    8,
    "Pinned",
    2,
    "Folders",
    "Home",
    "Work",
    3,
    "Today",
    1,
    6,
  ]);
  const counts = rows.flatMap((row) => (row.kind === "folder" ? [row.chats] : []));
  expect(counts, "the pinned one too").toEqual([1, 2]);
  const sections = rows.map(({ section }) => section);
  expect(sections).toEqual([
    null,
    null,
    "pinned",
    "pinned",
    null,
    6,
    5,
    5,
    "loose",
    "loose",
    "loose",
  ]);
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
});

test("an empty folder says so, and one that is folded says nothing", () => {
  const folder = { id: 1, name: "Work", collapsed: false };
  expect(shown(rowsOf([], [folder], now))).toEqual(["Work", "No chats yet"]);
  expect(shown(rowsOf([], [{ ...folder, collapsed: true }], now))).toEqual(["Work"]);
});

test("a folder and a chat may have one name", () => {
  const folders = [{ id: 1, name: "Work", collapsed: false }];
  const rows = rowsOf([chat(1, at(18, 8), { title: "Work", folder: 1 })], folders, now);
  expect(rows.map(({ key }) => key)).toEqual(["folder-1", "chat-1"]);
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
    const kinds = rowsOf(chats, [], now).map((row) => (row.kind === "chat" ? "" : row.key));
    expect(kinds).toEqual([
      "Today",
      "",
      "",
      "Yesterday",
      "",
      "",
      "This week",
      "",
      "",
      "Older",
      "",
      "",
      "",
    ]);
  }
});
