import type { Entry } from "../state/entry.svelte";

/** A question with what follows it, so that the newest can have the height of the view. */
export type Turn = {
  /** Its first entry's. */
  id: number;
  entries: Entry[];
  /** How many entries come before it. */
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

/** The widest that text gets, and what stands beside it; see Log. */
const MEASURE_PX = 736;
const PADDING_PX = 48;
const LETTER_PX = 7.7;
const LINE_PX = 26;
/** What a message has beside its text, with the gap below it. */
const ROUND_PX = 76;
/** A longer question is folded. */
const FOLDED_PX = 290;
/** Markdown has lists, tables and gaps between paragraphs. */
const AIR = 1.35;

/** The height that a turn is likely to have in a log of this width, in pixels. Looks at no text, only at its length. */
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
