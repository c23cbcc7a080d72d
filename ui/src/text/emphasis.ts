import type { MarkdownIt, StateInline } from "markdown-it";

/** Characters that open a quotation or a bracket. */
const OPENING = /[\p{Ps}\p{Pi}"'`$\\]/u;
const SPACE = /\s/u;
const STAR = 0x2a;

/**
 * Bold text next to punctuation, as models write it: `**Note:**text` and `字**「字」**字`. CommonMark
 * only considers the adjacent characters, and keeps those asterisks as text. Here two asterisks
 * close an open emphasis, whatever follows them.
 */
export function emphasis(md: MarkdownIt): void {
  md.inline.State = class extends md.inline.State {
    override scanDelims(
      start: number,
      canSplitWord: boolean,
    ): ReturnType<StateInline["scanDelims"]> {
      const scanned = super.scanDelims(start, canSplitWord);
      if (this.src.charCodeAt(start) !== STAR || scanned.length < 2) return scanned;
      if (scanned.can_open && scanned.can_close) return scanned;
      const before = this.src[start - 1] ?? " ";
      const after = this.src[start + scanned.length] ?? " ";
      const isOpen = isStrongOpen(this);
      if (!scanned.can_close && isOpen && !SPACE.test(before))
        return { ...scanned, can_open: false, can_close: true };
      if (!scanned.can_open && !isOpen && OPENING.test(after))
        return { ...scanned, can_open: true, can_close: false };
      return scanned;
    }
  };
}

/** Checks if more runs of two or more asterisks have opened than closed. */
function isStrongOpen(state: StateInline): boolean {
  let depth = 0;
  let at = 0;
  while (at < state.delimiters.length) {
    const run = state.delimiters[at];
    const length = run?.length ?? 1;
    if (run?.marker === STAR && length >= 2 && run.open !== run.close)
      depth = Math.max(0, depth + (run.open ? 1 : -1));
    at += Math.max(length, 1);
  }
  return depth > 0;
}
