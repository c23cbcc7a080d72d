import { expect, test } from "vitest";
import type { ProcessSockets } from "../state/types";
import { downloadWords, notShownWords, reportText, whenWords } from "./network";

const process = (part: Partial<ProcessSockets>): ProcessSockets => ({
  pid: 10,
  name: "goldcrest",
  role: "app",
  readable: true,
  network: [],
  local: 3,
  kernel: 0,
  unconnected: 0,
  ...part,
});
const at = new Date("2026-11-24T08:00:00Z");

test("a report says when, of which programs, and what each has open", () => {
  const processes = [
    process({}),
    process({ pid: 11, name: "WebKitWebProcess", role: "web-view", kernel: 1, unconnected: 2 }),
    process({
      pid: 12,
      name: "goldcrest-fetch",
      role: "download",
      network: ["TCP 10.0.0.2:5 to 1.2.3.4:443"],
    }),
    process({
      pid: 14,
      name: "goldcrest-serve",
      role: "api",
      network: ["TCP, listens on 127.0.0.1:8484"],
    }),
    process({ pid: 13, name: "other", role: "other", readable: false }),
  ];
  const text = reportText({ check: { type: "counted", processes }, at }, 0, "0.1.0");
  expect(text).toContain("Goldcrest 0.1.0\nNetwork connections, checked 2026-11-24T08:00:00.000Z");
  expect(text).toContain("Of the app: 0\ngoldcrest-fetch, the program that downloads");
  expect(text).toContain("has 1 socket, for programs on this computer only.");
  expect(text).toContain("goldcrest, process 10 (the app)\n  Network: 0");
  expect(text).toContain("WebKitWebProcess, process 11 (draws the window)");
  expect(text).toContain("  To the kernel: 1\n  In no table, so not connected: 2");
  expect(text).toContain("  Network: 1\n    TCP 10.0.0.2:5 to 1.2.3.4:443");
  expect(text).toContain(
    "other, process 13 (started by the app)\n  Its sockets could not be read.",
  );
});

test("what is not known is not said to be none", () => {
  const check = { type: "notShown", system: "macos" } as const;
  const text = reportText({ check, at }, null, "0.1.0");
  expect(text).toContain(notShownWords("macos"));
  expect(text).toContain("on Linux only; this is macOS");
  expect(downloadWords({ type: "counted", processes: [process({})] })).toBeNull();
});

test("the time of a check is said as a person would", () => {
  const after = (minutes: number): string =>
    whenWords(at, new Date(at.getTime() + minutes * 60_000));
  expect([after(0.5), after(1), after(59)]).toEqual([
    "checked just now",
    "checked 1 minute ago",
    "checked 59 minutes ago",
  ]);
  expect(after(60)).toMatch(/^checked at \d\d:\d\d$/);
});
