import { count } from "../text/figures";

/** Estimate of bytes per token, used until the model has counted. */
const BYTES_PER_TOKEN = 4;

/** Size and tokens of a long text, and whether it fits in a message with `room` tokens. */
export function pasteFacts(
  text: string,
  counted: number | null,
  room: number | null,
): { size: string; tokens: string; fits: boolean } {
  const bytes = new TextEncoder().encode(text).length;
  const tokens = counted ?? Math.ceil(bytes / BYTES_PER_TOKEN);
  const step = 10 ** Math.max(0, String(tokens).length - 3);
  return {
    size: sizeOf(bytes),
    tokens:
      counted === null
        ? `about ${count(Math.round(tokens / step) * step)} tokens`
        : `${count(tokens)} tokens`,
    fits: room === null || tokens <= room,
  };
}

function sizeOf(bytes: number): string {
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} KB`;
  return `${(bytes / 1e6).toFixed(1).replace(/\.0$/u, "")} MB`;
}
