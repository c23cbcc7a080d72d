import { plainText } from "./plain";
import { texAsText } from "./tex";

/** A part of a text, and whether it matches the search. */
export type Part = { text: string; hit: boolean };

/** A search hit's snippet in parts, without marks of Markdown and TeX; what was found lies between U+E000 and U+E001. */
export function parts(snippet: string): Part[] {
  return split(plain(snippet));
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

function plain(snippet: string): string {
  const [begin = "", inner = "", end = ""] = /^(…?)([\s\S]*?)(…?)$/u.exec(snippet)?.slice(1) ?? [];
  const text = plainText(
    inner
      // The name of a command is no word to be marked.
      .replace(/\\\uE000([a-zA-Z]+)\uE001/gu, String.raw`\$1`)
      // A link that was cut off has lost its address, or its end.
      .replace(/\[([^[\]\n]*)(?:\]\([^()\s]*)?$/u, "$1")
      // A row of dashes that was cut off at its beginning or its end.
      .replace(/^[ \t|:-]*-[ \t|:-]*(?:\n|$)|\n[ \t|:-]*-[ \t|:-]*$/gu, "\n"),
  );
  // A formula that was cut off has lost one of its marks.
  const isCut = /\$\$|\\[a-zA-Z]{2,}/u.test(text);
  return begin + (isCut ? texAsText(text.replaceAll("$$", " ")) : text) + end;
}
