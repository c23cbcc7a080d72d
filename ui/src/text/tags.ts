import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";
import { mayGoOn, textOf } from "./lines";

/**
 * Supports the few HTML tags that models use where Markdown has no syntax, without attributes.
 * Other HTML stays text. A `details` element becomes its content, with the summary in bold.
 * Comments are removed.
 */
export function tags(md: MarkdownIt): void {
  md.inline.ruler.before("html_inline", "tags", inlineTag);
  md.block.ruler.before("paragraph", "details", detailsLine, { alt: ["paragraph"] });
  md.block.ruler.before("paragraph", "comment", blockComment, { alt: ["paragraph"] });
  md.renderer.rules["comment"] = () => "";
}

const PAIRED: Record<string, string> = {
  sub: "sub",
  sup: "sup",
  kbd: "kbd",
  mark: "mark",
  u: "u",
  summary: "strong",
};
const TAG = /^<(\/?)([a-z]{1,7})\s?(\/?)>/iu;
const DETAILS = /^<\/?details(?: open)?>$/iu;

function inlineTag(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  if (src[pos] !== "<") return false;
  if (src.startsWith("<!--", pos)) {
    const end = src.indexOf("-->", pos + 4);
    if (end < 0 || end + 3 > posMax) return false;
    state.pos = end + 3;
    return true;
  }
  const [tag, slash, written = "", closed] =
    TAG.exec(src.slice(pos, Math.min(pos + 12, posMax))) ?? [];
  if (tag === undefined) return false;
  const name = written.toLowerCase();
  if (name === "br" && slash === "") {
    if (!silent) state.push("hardbreak", "br", 0);
    state.pos = endOfSpace(src, pos + tag.length, posMax);
    return true;
  }
  if (DETAILS.test(tag)) {
    state.pos += tag.length;
    return true;
  }
  const element = PAIRED[name];
  if (element === undefined || slash !== "" || closed !== "") return false;
  const from = pos + tag.length;
  const to = endOfElement(src, from, posMax, name);
  if (to < 0) return false;
  if (!silent) {
    state.push(`${element}_open`, element, 1);
    state.pos = from;
    state.posMax = to;
    state.md.inline.tokenize(state);
    state.posMax = posMax;
    state.push(`${element}_close`, element, -1);
    if (name === "summary" && /\S/u.test(src[to + name.length + 3] ?? ""))
      state.push("hardbreak", "br", 0);
  }
  state.pos = to + name.length + 3;
  return true;
}

/** Position after a break tag, past a line break, which would be a second one. */
function endOfSpace(src: string, from: number, max: number): number {
  let at = from;
  while (at < max && src[at] === " ") at += 1;
  return at < max && src[at] === "\n" ? at + 1 : from;
}

/** Position of the closing tag; -1 if there is none. */
function endOfElement(src: string, from: number, max: number, name: string): number {
  const to = src.slice(from, max).search(new RegExp(`</${name}>`, "iu"));
  return to < 0 ? -1 : from + to;
}

/** Matches a line that consists of a `details` tag. */
function detailsLine(state: StateBlock, line: number, _: number, silent: boolean): boolean {
  if (!DETAILS.test(textOf(state, line))) return false;
  if (!silent) state.line = line + 1;
  return true;
}

/**
 * Removes a comment on its own lines. A comment without an end is also removed while its end may
 * still arrive.
 */
function blockComment(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  if (!textOf(state, first).startsWith("<!--")) return false;
  const begin = (state.bMarks[first] ?? 0) + (state.tShift[first] ?? 0);
  const end = state.src.indexOf("-->", begin + 4);
  const isOpen = mayGoOn(state, last) && end < 0;
  let line = first;
  while (line < last && (end < 0 || (state.eMarks[line] ?? 0) < end)) line++;
  if (!isOpen && !(line < last && textOf(state, line).endsWith("-->"))) return false;
  if (silent) return true;
  state.line = Math.min(line + 1, last);
  state.push("comment", "", 0).map = [first, state.line];
  return true;
}
