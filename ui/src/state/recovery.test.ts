import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { damaged, missing } from "../host/fake/library";
import type { StartProblem } from "../host/host";
import { copyName, explain, Recovery } from "./recovery.svelte";

function recovery(change: Partial<StartProblem> = {}): { host: FakeHost; recovery: Recovery } {
  const problem = { ...damaged, ...change };
  const host = new FakeHost({ problem });
  return { host, recovery: new Recovery(host, problem) };
}

test("a copy is restored, and what became of the damaged file is said", async () => {
  const { host, recovery: start } = recovery();
  const [newest] = start.problem.copies;
  if (!newest) throw new Error("no copies");
  await start.restore(newest);
  expect(host.calls).toEqual([["restoreCopy", "day-2026-11-21.db"]]);
  expect(await start.started).toBe(
    "Goldcrest goes on from the backup of 21 November 2026. Your previous file is kept as goldcrest-set-aside-2026-11-22.db.",
  );
});

test("an empty file is begun, the damaged one is used, or it is tried again", async () => {
  const ways = [
    ["startEmpty", (start: Recovery) => start.startEmpty(), /no chats.*set-aside/],
    ["openDamaged", (start: Recovery) => start.openDamaged(), /using the damaged file/],
  ] as const;
  for (const [call, take, said] of ways) {
    const { host, recovery: start } = recovery();
    await take(start);
    expect(host.calls).toEqual([[call]]);
    expect(await start.started).toMatch(said);
  }
  const { host, recovery: start } = recovery({ kind: "disk-full" });
  await start.retry();
  expect(host.calls).toEqual([["retryStart"]]);
  expect(await start.started).toBeNull();
});

test("what fails is said, and every way stays open", async () => {
  const { host, recovery: start } = recovery();
  host.startEmpty = () => Promise.reject({ code: "store", message: "The disk is full." });
  await start.startEmpty();
  expect([start.error, start.busy]).toEqual(["The disk is full.", null]);

  const other: StartProblem = { ...damaged, kind: "disk-full", copies: [], keptAs: null };
  host.retryStart = () => Promise.resolve({ type: "problem", ...other });
  await start.retry();
  expect(start.problem.kind).toBe("disk-full");
  expect(start.error).not.toBe("");

  host.showDataFolder = () => Promise.reject({ code: "other", message: "No file manager." });
  await start.showFolder();
  expect(start.error).toBe("No file manager.");
});

test("where the file is missing, nothing is said to be kept", async () => {
  const { recovery: start } = recovery(missing);
  expect(start.canStartEmpty).toBe(true);
  await start.startEmpty();
  expect(await start.started).toBe("Goldcrest starts with no chats.");
  const full = recovery({ kind: "disk-full", copies: [], keptAs: null });
  expect(full.recovery.canStartEmpty).toBe(false);
});

test("the next try takes away what was said of the last one", async () => {
  const { host, recovery: start } = recovery();
  host.startEmpty = () => Promise.reject({ code: "store", message: "The disk is full." });
  await start.startEmpty();
  host.retryStart = () => new Promise(() => undefined);
  void start.retry();
  expect([start.error, start.busy]).toEqual(["", "Trying again…"]);
});

test("every kind of failed start is explained in its own words", () => {
  const titles = {
    damaged: /chats is damaged/,
    newer: /newer Goldcrest/,
    foreign: /not Goldcrest’s/,
    unreadable: /cannot be opened/,
    "read-only": /cannot be written/,
    "folder-not-writable": /written in the data folder/,
    held: /Another program/,
    "disk-full": /disk is full/,
    "in-use": /open already/,
    importing: /being imported/,
    missing: /chats is missing/,
    other: /could not start/,
  };
  for (const [kind, title] of Object.entries(titles) as [keyof typeof titles, RegExp][]) {
    const explained = explain({ ...damaged, kind });
    expect(explained.title).toMatch(title);
    const others = Object.values(titles).filter((each) => each.test(explained.title));
    expect(others).toEqual([title]);
    expect(explained.text.length).toBeGreaterThan(20);
  }
});

test("one thing is done at a time", async () => {
  const { host, recovery: start } = recovery();
  const first = start.startEmpty();
  expect(start.busy).not.toBeNull();
  await start.retry();
  await first;
  expect(host.calls).toEqual([["startEmpty"]]);
});

test("copies have the names that people give them", () => {
  const copy = { name: "x", reason: "daily", time: null, number: 1, bytes: 1e6, chats: 1 } as const;
  expect(copyName({ ...copy, day: "2026-03-05" })).toBe("the backup of 5 March 2026");
  expect(copyName({ ...copy, day: "2026-03-05", time: "14:05" })).toBe(
    "the backup of 5 March 2026, 14:05",
  );
  expect(copyName({ ...copy, day: null })).toBe("the backup made before the last update");
  const aside = { ...copy, reason: "set-aside", day: "2026-03-05" } as const;
  expect(copyName(aside)).toBe("the chats before a restore, 5 March 2026");
  expect(copyName({ ...aside, number: 2 })).toBe("the chats before a restore, 5 March 2026 (2)");
});

test("damage is explained with the copies that there are", () => {
  expect(explain(damaged).text).toMatch(/go on from a backup/);
  expect(explain({ ...damaged, copies: [] }).text).toMatch(/no good backup/);
  expect(explain(damaged).text).not.toMatch(/still opens/);
  expect(explain({ ...damaged, opens: true }).text).toMatch(/still opens/);
  expect(explain(missing).text).toMatch(/go on from a backup/);
  expect(explain({ ...missing, copies: [] }).text).toMatch(/no good backup/);
});

test("a folder that is gone is chosen again, or left for the first one", async () => {
  const { host, recovery: start } = recovery({ kind: "folder-missing", copies: [], keptAs: null });
  host.closesDialogs = true;
  await start.chooseFolder();
  expect(start.busy).toBeNull();
  host.chooseDataFolder = () => Promise.reject({ code: "other", message: "There are no chats." });
  await start.chooseFolder();
  expect([start.error, start.busy]).toEqual(["There are no chats.", null]);
  await start.beginInDefaultFolder();
  expect(host.calls).toContainEqual(["beginInDefaultFolder"]);
  expect([start.error, start.busy]).toEqual(["", "Goldcrest starts again…"]);
});
