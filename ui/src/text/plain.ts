import { texAsText } from "./tex";

/**
 * Formulas by their marks, in the same dialects as `math.ts`; a price such as $5 is none. None holds its own mark
 * again, so that a text of marks takes linear time.
 */
const FORMULA =
  /\$\$([^$]{1,2000})\$\$|\\\[((?:(?!\\[[\]])[\s\S]){1,2000})\\\]|\\\(((?:(?!\\[()])[\s\S]){1,2000})\\\)|\$(?=\S)([^$\n]{0,2000}?[^\s\\$])\$(?!\d)/gu;

/** What Markdown writes for its own sake: in a line's beginning, around words, between cells. */
const LINE_MARKS =
  /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|(?:```|~~~).*$)/gmu;
const TABLE_RULE = /^(?=[^\n]*--)[ \t|:-]+$/gmu;
const RULE = /^[ \t]*[*_-][ \t*_-]+$/gmu;
const LINK = /!?\[([^[\]\n]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?\)/gu;
const EMPHASIS = /(\*{1,3}|~~|`+)(?=\S)|(?<=\S)(\*{1,3}|~~|`+)/gu;
const UNDERSCORES = /(?<![\p{L}\p{N}_])_{1,3}(?=\S)|(?<=\S)_{1,3}(?![\p{L}\p{N}_])/gu;

/** Markdown as one line of plain text, as a person would read it out; formulas in signs instead of TeX. */
export function plainText(markdown: string): string {
  return markdown
    .replace(
      FORMULA,
      (_, block?: string, bracket?: string, round?: string, inline?: string) =>
        ` ${texAsText(block ?? bracket ?? round ?? inline ?? "")} `,
    )
    .replace(TABLE_RULE, "")
    .replace(RULE, "")
    .replace(LINE_MARKS, "")
    .replace(LINK, "$1")
    .replace(EMPHASIS, "")
    .replace(UNDERSCORES, "")
    .replaceAll("|", " ")
    .replace(/\s+/gu, " ")
    .replace(/ (?=[,.;:!?)])/gu, "")
    .trim();
}
