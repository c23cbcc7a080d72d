import { oneLine, plainText } from "./plain";
import { hasTex } from "./tex";

/** A part of a text, and whether it matches the search. */
export type Part = { text: string; hit: boolean };

/**
 * A search hit's snippet in parts; what was found lies between U+E000 and U+E001. Where it is Markdown, as an answer is,
 * its marks and those of TeX are left out.
 */
export function parts(snippet: string, isMarkdown: boolean): Part[] {
  return split(isMarkdown ? withoutMarks(snippet) : oneLine(snippet));
}

/** A text in parts, cut at these places. */
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

/** Stands where a text was cut off, so that it begins no line. */
const CUT = "\uE004";

function withoutMarks(snippet: string): string {
  const [begin = "", inner = "", end = ""] = /^(…?)([\s\S]*?)(…?)$/u.exec(snippet)?.slice(1) ?? [];
  const text = plainText(
    (begin && CUT) +
      inner
        // The name of a command is no word to be marked.
        .replace(/\\\uE000([a-zA-Z]+)\uE001/gu, (found, name: string) =>
          hasTex(`\\${name}`) ? `\\${name}` : found,
        )
        // A link that was cut off has lost its address, or its end.
        .replace(/\[([^[\]\n]*)(?:\]\([^()\s]*)?$/u, "$1")
        // A row of dashes that was cut off at its beginning or its end.
        .replace(/^[ \t|:-]*-[ \t|:-]*(?:\n|$)|\n[ \t|:-]*-[ \t|:-]*$/gu, "\n"),
    true,
  );
  return begin + text.replace(CUT, "").trimStart() + end;
}
