import { hasTex, texAsText } from "./tex";

/** Delimiters of a search match in a snippet. */
const HIT = String.raw`\uE000\uE001`;
/** Delimiters of a placeholder for verbatim text, around its number. */
const [KEPT, KEPT_END] = ["\uE002", "\uE003"];

/** A code block, which may lack a closing fence. */
const FENCE =
  /^[ \t]*(`{3,}|~{3,})(?![`~])[^`\n]*\n([\s\S]*?)(?:\n[ \t]*\1[`~]*[ \t]*$|(?![\s\S]))/gmu;
const CODE = /``((?:[^`]|`(?!`)){1,2000}?)``|`([^`]{1,2000})`/gu;
/** Punctuation at the edges of a match, kept because it is part of the query. */
const FOUND_SIGNS = /\uE000[^\p{L}\p{N}\s\uE001]{1,20}|[^\p{L}\p{N}\s\uE000]{1,20}\uE001/gu;
/** Name of a program, such as __init__, which is more likely than one bold word. */
const NAME = new RegExp(
  String.raw`(?<![\p{L}\p{N}_][${HIT}]{0,2})__[\p{L}\p{N}${HIT}]+(?:_[\p{L}\p{N}${HIT}]+)*__(?![${HIT}]{0,2}[\p{L}\p{N}_])`,
  "gu",
);

/**
 * Formulas by their delimiters, as in `math.ts`; a price such as $5 is not one. No formula contains
 * its own delimiter, so matching takes linear time.
 */
const FORMULA =
  /\$\$([^$]{1,2000})\$\$|\\\[((?:(?!\\[[\]])[\s\S]){1,2000})\\\]|\\\(((?:(?!\\[()])[\s\S]){1,2000})\\\)|\$(?=\S)([^$\n]{0,2000}?[^\s\\$])\$(?!\d)/gu;

/** Markdown syntax at the start of lines, around words and between cells. */
const LINE_MARKS =
  /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|(?:```|~~~).*$)/gmu;
const TABLE_RULE = /^(?=[^\n]*--)[ \t|:-]+$/gmu;
const RULE = /^[ \t]*[*_-][ \t*_-]+$/gmu;
const LINK = /!?\[([^[\]\n]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?\)/gu;
const [BEFORE_WORD, AFTER_WORD] = [
  `(?=[${HIT}]{0,2}[^\\s${HIT}])`,
  `(?<=[^\\s${HIT}][${HIT}]{0,2})`,
];
const STRONG = new RegExp(
  String.raw`(?:\*{2,3}|~~|\x60+)${BEFORE_WORD}|${AFTER_WORD}(?:\*{2,3}|~~|\x60+)`,
  "gu",
);
/** A single asterisk is literal. */
const EMPHASIS = new RegExp(String.raw`\*${BEFORE_WORD}([^*\n]{1,1000}?)${AFTER_WORD}\*`, "gu");
const UNDERSCORES = new RegExp(
  String.raw`(?<![\p{L}\p{N}_][${HIT}]{0,2})_{1,3}${BEFORE_WORD}|${AFTER_WORD}_{1,3}(?![${HIT}]{0,2}[\p{L}\p{N}_])`,
  "gu",
);
const WORD = /[\p{L}\p{N}]/u;

/**
 * Converts Markdown to one line of plain text, as it would be read out. Code stays verbatim; TeX
 * becomes Unicode characters. `isCut`: the text may begin or end within a formula.
 */
export function plainText(markdown: string, isCut = false): string {
  const kept: string[] = [];
  const keep = (text: string): string => `${KEPT}${kept.push(text) - 1}${KEPT_END}`;
  const prose = markdown
    .replace(/[\uE002\uE003]/gu, "")
    .replace(FENCE, (_, __, code: string) => keep(code))
    .replace(CODE, (_, double?: string, single?: string) => keep(double ?? single ?? ""))
    .replace(FOUND_SIGNS, keep)
    .replace(NAME, keep)
    .replace(FORMULA, (...found: [string, ...(string | undefined)[], number, string]) => {
      const [, block, bracket, round, inline] = found as (string | undefined)[];
      const [at, text] = found.slice(-2) as [number, string];
      const space = (beside: string | undefined): string => (WORD.test(beside ?? "") ? " " : "");
      const tex = texAsText(block ?? bracket ?? round ?? inline ?? "");
      return `${space(text[at - 1])}${tex}${space(text[at + found[0].length])}`;
    })
    .replace(TABLE_RULE, "")
    .replace(RULE, "")
    .replace(LINE_MARKS, "")
    .replace(LINK, "$1")
    .replace(STRONG, "")
    .replace(EMPHASIS, "$1")
    .replace(UNDERSCORES, "")
    .replaceAll("|", " ");
  const text = isCut && hasTex(prose) ? texAsText(prose.replaceAll("$$", " ")) : prose;
  return oneLine(
    text.replace(/\uE002(\d+)\uE003/gu, (_, number: string) => kept[Number(number)] ?? ""),
  );
}

/** Joins the lines of a text, otherwise verbatim. */
export function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
