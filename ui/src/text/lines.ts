import type { StateBlock } from "markdown-it";

/** Checks if this is the last line of a text that may still grow. */
export function mayGoOn(state: StateBlock, last: number): boolean {
  return state.env["open"] === true && last === state.bMarks.length - 1;
}

/** Text of a line without indentation and container markers. */
export function textOf(state: StateBlock, line: number): string {
  return state.src
    .slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line])
    .trimEnd();
}

/** First line after a paragraph that continues at `line`. */
export function endOfParagraph(state: StateBlock, line: number, last: number): number {
  const rules = state.md.block.ruler.getRules("paragraph");
  const before = state.parentType;
  state.parentType = "paragraph";
  let next = line;
  while (
    next < last &&
    !state.isEmpty(next) &&
    !rules.some((rule) => rule(state, next, last, true))
  )
    next += 1;
  state.parentType = before;
  return next;
}
