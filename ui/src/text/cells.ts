import type { MarkdownIt, StateCore } from "markdown-it";

/** Placeholder for a pipe within a cell while rows are split. */
const PIPE = "\uE010";

const DELIMITER_ROW = /^[\s>]*\|?[\s:-]*-[\s:-]*(?:\|[\s:-]*)+$/u;
/** Quotation and list markers before a row. */
const PREFIX = /^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+(?=\|))?/u;
const UNESCAPED_PIPE = /(?<!\\)\|/u;

/** Code and formulas, in which a pipe is literal. A price such as $5 does not start a formula. */
const SPAN =
  /(?<![\\`])(`{1,3})(?!`)(?:(?!\1(?!`)).){1,500}\1(?!`)|\\\((?:(?!\\[()]).){1,500}\\\)|\$\$[^$]{1,500}\$\$|(?<![\\$])\$(?![\s$])(?:\\.|[^$\\]){0,500}(?<!\s)\$(?!\d)/gu;

/**
 * Tables with pipes within cells. GFM ends the cell at each pipe and drops surplus cells. Here the
 * pipes in a row's formulas and code are literal if that gives the row as many cells as the table
 * has columns.
 */
export function cells(md: MarkdownIt): void {
  md.core.ruler.before("block", "pipes", hidePipes);
  md.core.ruler.after("block", "pipes-again", ({ tokens }) => {
    for (const token of tokens)
      if (token.content.includes(PIPE)) token.content = token.content.replaceAll(PIPE, "|");
  });
}

function hidePipes(state: StateCore): void {
  if (!state.src.includes("|")) return;
  const lines = state.src.split("\n");
  for (let at = 1; at < lines.length; at++) {
    const delimiters = lines[at] ?? "";
    if (!delimiters.includes("|") || !DELIMITER_ROW.test(delimiters)) continue;
    const columns = countCells(delimiters);
    lines[at - 1] = withHiddenPipes(lines[at - 1] ?? "", columns);
    for (at += 1; lines[at]?.includes("|"); at++)
      lines[at] = withHiddenPipes(lines[at] ?? "", columns);
  }
  state.src = lines.join("\n");
}

function withHiddenPipes(row: string, columns: number): string {
  if (countCells(row) === columns) return row;
  const hidden = row.replace(SPAN, (span) => span.replaceAll("|", PIPE));
  return countCells(hidden) === columns ? hidden : row;
}

function countCells(row: string): number {
  const parts = row.replace(PREFIX, "").trim().split(UNESCAPED_PIPE);
  const edges = Number(parts[0] === "") + Number(parts.length > 1 && parts.at(-1) === "");
  return parts.length - edges;
}
