const number = new Intl.NumberFormat("en");

/** Formats an integer: 1,536. */
export const count = (value: number): string => number.format(value);

export const tokens = (value: number): string =>
  `${count(value)} ${value === 1 ? "token" : "tokens"}`;

/** Formats a rate: 8.3 tokens/s, 1,277 tokens/s. */
export const rate = (perSecond: number): string =>
  `${perSecond >= 9.95 ? count(Math.round(perSecond)) : perSecond.toFixed(1)} tokens/s`;

/** Formats a delay in milliseconds: under 0.1 s, 0.3 s, 12 s. */
export function wait(ms: number): string {
  if (ms < 100) return "under 0.1 s";
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : `${count(Math.round(ms / 1000))} s`;
}

/** Formats bytes: 4.6 MB, 1.9 GB. */
export function size(bytes: number): string {
  const megabytes = Math.round(bytes / 1e5) / 10;
  if (megabytes >= 1000) return `${(megabytes / 1000).toFixed(1)} GB`;
  return `${megabytes < 10 ? megabytes.toFixed(1) : Math.round(megabytes)} MB`;
}

/** Formats a remaining time in seconds: a few seconds, 40 s, 3 min, 1 h 12 min. */
export function timeLeft(seconds: number): string {
  if (seconds < 10) return "a few seconds";
  if (seconds < 57.5) return `${Math.round(seconds / 5) * 5} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 === 0 ? `${count(hours)} h` : `${count(hours)} h ${minutes % 60} min`;
}

/** Formats a number of chats: 1 chat, 1,200 chats. */
export const chatCount = (chats: number): string =>
  chats === 1 ? "1 chat" : `${count(chats)} chats`;

/** Formats a number of characters: 1 character, 5,812 characters. */
export const characters = (length: number): string =>
  `${count(length)} ${length === 1 ? "character" : "characters"}`;
