import type { Token } from "markdown-it";
import { setsDirection } from "./bidi";
import { beforePair } from "./pieces";

/**
 * Budget of a window for parsing and rendering: one per character, and extra for expensive content.
 */
const MOST = 8_000;
const LINE_COST = 40;
const FORMULA_COST = 60;
const CELL_COST = 20;
const ITEM_COST = 40;
/** WebKit takes 200 ms to lay out a paragraph of 5,700 characters with 600 isolates. */
const DIRECTION_COST = 60;

/** End of the window that begins at `from`: the end of the text, or of a line if one is near. */
export function endOfWindow(source: string, from: number): number {
  let cost = 0;
  let line = from;
  let at = from;
  for (; at < source.length && cost < MOST; at++) {
    const code = source.charCodeAt(at);
    cost += 1;
    if (code === 10) {
      cost += /[-*+]/.test(source[at + 1] ?? "") ? LINE_COST + ITEM_COST : LINE_COST;
      line = at + 1;
    } else if (code === 124) {
      cost += CELL_COST;
    } else if (code === 36 || (code === 92 && /[([]/.test(source[at + 1] ?? ""))) {
      cost += FORMULA_COST;
    } else if (setsDirection(code)) {
      cost += DIRECTION_COST;
    }
  }
  if (at === source.length) return at;
  return line > (from + at) / 2 ? line : beforePair(source, at);
}

/** Split position of a block that fills its window, and the text to prepend to the next part. */
export function cutFor(
  tokens: Token[],
  text: string,
  lines: number[],
): { at: number; head: string } {
  const [first] = tokens;
  if (first?.type === "table_open") {
    const rows = tokens.filter((token) => token.type === "tr_open");
    const head = lines[rows[0]?.map?.[0] ?? 0] ?? 0;
    const body = lines[rows[1]?.map?.[0] ?? 0] ?? 0;
    const at = lines[rows.at(-1)?.map?.[0] ?? 0] ?? 0;
    if (rows.length > 2) return { at, head: text.slice(head, body) };
  }
  const item = tokens.findLast((token) => token.type === "list_item_open" && token.level === 1);
  const at = lines[item?.map?.[0] ?? 0] ?? 0;
  if (at > text.length / 2) return { at, head: "" };
  return { at: endOfPiece(text), head: "" };
}

/** Last line or word boundary in the second half of a text; its end if there is none. */
function endOfPiece(text: string): number {
  for (const end of ["\n", " "]) {
    const at = text.lastIndexOf(end, text.length - 2) + 1;
    if (at > text.length / 2) return at;
  }
  return text.length;
}
