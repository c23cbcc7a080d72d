import { hasTex, texAsText } from "./tex";

/** What a search has found stands between these two, in a snippet. */
const HIT = String.raw`\uE000\uE001`;
/** What is kept as it is stands elsewhere meanwhile, under its number. */
const [KEPT, KEPT_END] = ["\uE002", "\uE003"];

/** A block of code, which may end with the text. */
const FENCE =
  /^[ \t]*(`{3,}|~{3,})(?![`~])[^`\n]*\n([\s\S]*?)(?:\n[ \t]*\1[`~]*[ \t]*$|(?![\s\S]))/gmu;
const CODE = /``((?:[^`]|`(?!`)){1,2000}?)``|`([^`]{1,2000})`/gu;
/** Signs at the edges of a hit: somebody looks for them. */
const FOUND_SIGNS = /\uE000[^\p{L}\p{N}\s\uE001]{1,20}|[^\p{L}\p{N}\s\uE000]{1,20}\uE001/gu;
/** A name of a program, such as __init__, is more likely than one strong word. */
const NAME = new RegExp(
  String.raw`(?<![\p{L}\p{N}_][${HIT}]{0,2})__[\p{L}\p{N}${HIT}]+(?:_[\p{L}\p{N}${HIT}]+)*__(?![${HIT}]{0,2}[\p{L}\p{N}_])`,
  "gu",
);

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
const [BEFORE_WORD, AFTER_WORD] = [
  `(?=[${HIT}]{0,2}[^\\s${HIT}])`,
  `(?<=[^\\s${HIT}][${HIT}]{0,2})`,
];
const STRONG = new RegExp(
  String.raw`(?:\*{2,3}|~~|\x60+)${BEFORE_WORD}|${AFTER_WORD}(?:\*{2,3}|~~|\x60+)`,
  "gu",
);
/** A single star alone is a sign. */
const EMPHASIS = new RegExp(String.raw`\*${BEFORE_WORD}([^*\n]{1,1000}?)${AFTER_WORD}\*`, "gu");
const UNDERSCORES = new RegExp(
  String.raw`(?<![\p{L}\p{N}_][${HIT}]{0,2})_{1,3}${BEFORE_WORD}|${AFTER_WORD}_{1,3}(?![${HIT}]{0,2}[\p{L}\p{N}_])`,
  "gu",
);
const WORD = /[\p{L}\p{N}]/u;

/**
 * Markdown as one line of plain text, as a person would read it out; code as it is, formulas in signs instead of TeX.
 * `isCut`: the text may begin or end within a formula.
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

/** A text as it is, in one line. */
export function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}
