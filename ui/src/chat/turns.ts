import type { Entry } from "../state/entry.svelte";

/** A question and its answers, grouped so that the newest turn can fill the viewport. */
export type Turn = {
  /** Id of its first entry. */
  id: number;
  entries: Entry[];
  /** Number of entries before it. */
  before: number;
};

export function turnsOf(entries: Entry[]): Turn[] {
  const turns: Turn[] = [];
  for (const [before, entry] of entries.entries()) {
    const turn = turns.at(-1);
    if (turn && entry.role !== "user") turn.entries.push(entry);
    else turns.push({ id: entry.id, entries: [entry], before });
  }
  return turns;
}

/** Maximum width of the text, and its padding; see Log. */
const MEASURE_PX = 736;
const PADDING_PX = 48;
const LETTER_PX = 7.7;
const LINE_PX = 26;
/** Height of a message besides its text, including the gap below it. */
const ROUND_PX = 76;
/** Height at which a question is collapsed. */
const FOLDED_PX = 290;
/** Factor for lists, tables and paragraph spacing in Markdown. */
const AIR = 1.35;

/**
 * Estimated height of a turn in a log of this width, in pixels. Depends only on the lengths of its
 * texts.
 */
export function likelyHeight({ entries }: Turn, width: number): number {
  const measure = width > 0 ? Math.min(width - PADDING_PX, MEASURE_PX) : MEASURE_PX;
  const letters = Math.max(20, measure / LETTER_PX);
  let height = 0;
  for (const { role, text } of entries) {
    const lines = Math.ceil(text.length / letters) * LINE_PX;
    height += ROUND_PX + (role === "user" ? Math.min(lines, FOLDED_PX) : lines * AIR);
  }
  return height;
}
