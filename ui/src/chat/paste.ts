import { count } from "../text/figures";

/** Bytes of text that a token stands for, about; the model itself counts only what is sent. */
const BYTES_PER_TOKEN = 4;

/** What a long text is said to be: its size, about how many tokens, and whether a context of `room` can hold it. */
export function pasteFacts(
  text: string,
  room: number,
): { size: string; tokens: string; fits: boolean } {
  const bytes = new TextEncoder().encode(text).length;
  const tokens = Math.ceil(bytes / BYTES_PER_TOKEN);
  const step = 10 ** Math.max(0, String(tokens).length - 3);
  return {
    size: sizeOf(bytes),
    tokens: `about ${count(Math.round(tokens / step) * step)} tokens`,
    fits: room === 0 || tokens <= room,
  };
}

function sizeOf(bytes: number): string {
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} KB`;
  return `${(bytes / 1e6).toFixed(1).replace(/\.0$/u, "")} MB`;
}
