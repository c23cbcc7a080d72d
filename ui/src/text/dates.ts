import { count } from "./figures";

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  year: "numeric",
});

/** Formats a time in Unix seconds for a list: 14:05 today, 3 Mar this year, 3 Mar 2025 before. */
export function shortDate(seconds: number, now = new Date()): string {
  const date = new Date(seconds * 1000);
  if (date.toDateString() === now.toDateString()) return time.format(date);
  return (date.getFullYear() === now.getFullYear() ? day : dayOfYear).format(date);
}

/** Formats a time in Unix seconds with its day: Today, 14:05; 3 Mar, 14:05; 3 Mar 2025, 14:05. */
export function longDate(seconds: number, now = new Date()): string {
  const date = new Date(seconds * 1000);
  const short = shortDate(seconds, now);
  const of = time.format(date);
  return short === of ? `Today, ${of}` : `${short}, ${of}`;
}

const DAY_SECONDS = 24 * 60 * 60;

/** Time until a date in Unix seconds: 12 days, 1 day, today. */
export function daysLeft(seconds: number, now = new Date()): string {
  const days = Math.ceil((seconds - now.getTime() / 1000) / DAY_SECONDS);
  if (days <= 0) return "today";
  return days === 1 ? "1 day" : `${count(days)} days`;
}
