const number = new Intl.NumberFormat("en");

/** A whole number as the window writes it: 1,536. */
export const count = (value: number): string => number.format(value);

export const tokens = (value: number): string =>
  `${count(value)} ${value === 1 ? "token" : "tokens"}`;

/** 8.3 tokens/s, 1,277 tokens/s. */
export const rate = (perSecond: number): string =>
  `${perSecond >= 9.95 ? count(Math.round(perSecond)) : perSecond.toFixed(1)} tokens/s`;

/** A wait, from milliseconds: under 0.1 s, 0.3 s, 12 s. */
export function wait(ms: number): string {
  if (ms < 100) return "under 0.1 s";
  return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : `${count(Math.round(ms / 1000))} s`;
}
