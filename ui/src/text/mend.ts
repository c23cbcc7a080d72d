import { FenceLines } from "./fence";

/** An ambiguous last line: a list, heading or fence marker, or the edge of a table. */
const UNDECIDED =
  /^\s*(?:\d{1,9}[.)]\s+|[-*+>_=~#:|]\s*)*(?:\d{1,9}[.)]?|`{1,3}|\[[ xX]?\]?)?\s*$/u;
const TABLE_ROW = /^[\s>]*(?:[-*+]\s+)?\|/u;
const DELIMITER_ROW = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/u;

/**
 * Completes the end of a growing text: holds back ambiguous markers, and closes open emphasis, code
 * and links. This avoids flicker during streaming.
 */
export function mend(text: string): string {
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  if (endsInFence(lines)) return text;
  lines.push(last);
  const closed = isUndecided(last) || fenceOf(last) ? last : closeInline(last);
  if (!isUndecided(closed)) return [...lines.slice(0, -1), closed].join("\n");
  lines[lines.length - 1] = "";
  return holdBackTable(lines).join("\n");
}

const isUndecided = (line: string): boolean => UNDECIDED.test(line) || TABLE_ROW.test(line);

/** Markup and info of a fence, after the markers of items and quotations. */
function fenceOf(line: string): { markup: string; info: string } | null {
  const text = line.replace(/^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?/u, "");
  const [, markup, info = ""] = /^(`{3,}(?=[^`]*$)|~{3,})(.*)$/u.exec(text) ?? [];
  return markup === undefined ? null : { markup, info };
}

function endsInFence(lines: string[]): boolean {
  let fence: FenceLines | null = null;
  for (const line of lines) {
    const found = fenceOf(line);
    if (found === null) continue;
    if (fence === null) fence = new FenceLines(found.markup, found.info);
    else if (fence.closes(found.markup + found.info.trim(), 0)) fence = null;
  }
  return fence !== null;
}

/** Holds back the first row of a table, which is text until the delimiter row arrives. */
function holdBackTable(lines: string[]): string[] {
  const from =
    lines.findLastIndex((line, at) => at < lines.length - 1 && !TABLE_ROW.test(line)) + 1;
  const rows = lines.slice(from, -1);
  const below = rows[1] ?? "";
  const isTable = rows.length === 0 || (below.length < 1000 && DELIMITER_ROW.test(below));
  return isTable ? lines : [...lines.slice(0, from), ""];
}

/** Shows only the text of a link whose URL is incomplete. */
function closeLink(line: string): string {
  const ended = Math.max(line.lastIndexOf(")"), line.search(/\s\S*$/u));
  let at = line.indexOf("](", ended + 1);
  while (at >= 0) {
    const open = line.indexOf("[", line.lastIndexOf("]", at - 1) + 1);
    if (open < 0) return line;
    if (open < at) {
      const from = line[open - 1] === "!" ? open - 1 : open;
      return line.slice(0, from) + line.slice(open + 1, at);
    }
    at = line.indexOf("](", open);
  }
  return line;
}

const NAMES = ["br", "sub", "sup", "kbd", "mark", "u", "summary", "details"];
const TAG_BEGUN = /<(?:!-{0,2}|\/?([a-z]{0,7})[\s/]?)$/iu;

/** Removes an incomplete tag at the end of the line. */
function withoutTag(line: string): string {
  const [begun, name = ""] = TAG_BEGUN.exec(line) ?? [];
  const isTag = NAMES.some((each) => each.startsWith(name.toLowerCase()));
  return begun !== undefined && isTag ? line.slice(0, -begun.length) : line;
}

const PAIRED = /<(\/?)(sub|sup|kbd|mark|u|summary)>/giu;

function closeTags(line: string): string {
  let open = "";
  for (const [, slash, name = ""] of line.matchAll(PAIRED)) open = slash === "" ? name : "";
  return open === "" ? line : `${line}</${open}>`;
}

function closeInline(line: string): string {
  return closeTags(closeMarks(withoutTag(line)));
}

function closeMarks(line: string): string {
  let mended = closeLink(line).replace(/(?:\*{1,2}|`)$/u, (mark, at: number) =>
    isOpening(line, mark, at) ? "" : mark,
  );
  if (count(mended, /`/gu) % 2 === 1) return `${mended}\``;
  if (count(mended, /\*\*/gu) % 2 === 1) mended = `${mended.trimEnd()}**`;
  return mended;
}

/** Checks if a marker opens: at the end of the line it does not if all earlier ones are paired. */
function isOpening(line: string, mark: string, at: number): boolean {
  return count(line.slice(0, at), mark === "`" ? /`/gu : /\*\*/gu) % 2 === 0;
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
