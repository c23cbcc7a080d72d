import { expect, it } from "vitest";
import { daysLeft, longDate, shortDate } from "./dates";

it("says the time today, else the day, and the year where it is another one", () => {
  const now = new Date(2026, 10, 23, 15, 30);
  const said = (...at: [number, number, number, number, number]): string =>
    shortDate(new Date(...at).getTime() / 1000, now);
  expect(said(2026, 10, 23, 9, 5)).toBe("09:05");
  expect(said(2026, 10, 22, 9, 5)).toBe("22 Nov");
  expect(said(2025, 2, 3, 9, 5)).toBe("3 Mar 2025");
});

it("says the time with its day", () => {
  const now = new Date(2026, 10, 23, 15, 30);
  const said = (...at: [number, number, number, number, number]): string =>
    longDate(new Date(...at).getTime() / 1000, now);
  expect(said(2026, 10, 23, 9, 5)).toBe("Today, 09:05");
  expect(said(2026, 10, 22, 9, 5)).toBe("22 Nov, 09:05");
  expect(said(2025, 2, 3, 9, 5)).toBe("3 Mar 2025, 09:05");
});

it("days that are left are whole ones, and the last is today", () => {
  const now = new Date(2026, 2, 3, 14, 5);
  const left = (seconds: number): string => daysLeft(now.getTime() / 1000 + seconds, now);
  expect([30 * 86400, 86401, 86400, 1, 0, -5].map(left)).toEqual([
    "30 days",
    "2 days",
    "1 day",
    "1 day",
    "today",
    "today",
  ]);
});
