import { oneLine, plainText } from "./plain";
import { hasTex } from "./tex";

/** A part of a text. `hit`: matches the search. */
export type Part = { text: string; hit: boolean };

/**
 * Splits the snippet of a search hit, in which matches are enclosed by U+E000 and U+E001. For
 * Markdown, removes its syntax and that of TeX.
 */
export function parts(snippet: string, isMarkdown: boolean): Part[] {
  return split(isMarkdown ? withoutMarks(snippet) : oneLine(snippet));
}

/** Splits a text at these ranges. */
export function partsAt(text: string, places: [from: number, to: number][]): Part[] {
  let done = 0;
  let marked = "";
  for (const [from, to] of places) {
    marked += `${text.slice(done, from)}\uE000${text.slice(from, to)}\uE001`;
    done = to;
  }
  return split(marked + text.slice(done));
}

function split(marked: string): Part[] {
  return marked
    .split(/(\uE000[^\uE001]*\uE001?)/u)
    .filter((text) => text !== "")
    .map((text) => ({
      text: text.replace(/[\uE000\uE001]/gu, ""),
      hit: text.startsWith("\uE000"),
    }));
}

/**
 * Placeholder for the start of a truncated text, so that it does not count as the start of a line.
 */
const CUT = "\uE004";

function withoutMarks(snippet: string): string {
  const [begin = "", inner = "", end = ""] = /^(…?)([\s\S]*?)(…?)$/u.exec(snippet)?.slice(1) ?? [];
  const text = plainText(
    (begin && CUT) +
      inner
        // The name of a command is not a match.
        .replace(/\\\uE000([a-zA-Z]+)\uE001/gu, (found, name: string) =>
          hasTex(`\\${name}`) ? `\\${name}` : found,
        )
        // A truncated link lacks its URL or its end.
        .replace(/\[([^[\]\n]*)(?:\]\([^()\s]*)?$/u, "$1")
        // A truncated row of dashes.
        .replace(/^[ \t|:-]*-[ \t|:-]*(?:\n|$)|\n[ \t|:-]*-[ \t|:-]*$/gu, "\n"),
    true,
  );
  return begin + text.replace(CUT, "").trimStart() + end;
}
