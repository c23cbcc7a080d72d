import type { MarkdownIt, StateBlock, StateCore, StateInline } from "markdown-it";
import { escapeHtml } from "./code";
import { formula } from "./formula";
import { endOfParagraph, mayGoOn, textOf } from "./lines";

/**
 * Formulas in Markdown: `$…$`, `\(…\)`, `$$…$$`, `\[…\]` and environments such as `\begin{align}…`.
 *
 * The rules run within markdown-it, so code is never read as a formula, and nothing within a
 * formula as Markdown. A single `$` follows the rules of pandoc: no space after the opening one, no
 * space before and no digit after the closing one. So `$5 and $10` stays text.
 */
export function math(md: MarkdownIt): void {
  md.inline.ruler.before("escape", "math", inlineMath);
  md.block.ruler.before("fence", "math", blockMath, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  md.core.ruler.push("math-punctuation", joinPunctuation);
  md.core.ruler.push("math-lines", fitDisplay);
  md.renderer.rules["math_inline"] = (tokens, at) => {
    const { content = "", info: after = "", meta } = tokens[at] ?? {};
    const isDisplay = isDisplayed(meta);
    const beside = isDisplay && tokens.length > 1 ? " within" : "";
    const made =
      `<span class="math${isDisplay ? " formula" : ""}${beside}" data-tex="${escapeHtml(content)}">` +
      `${formula(content, isDisplay)}</span>`;
    return after === "" ? made : `<span class="unbroken">${made}${after}</span>`;
  };
  md.renderer.rules["math_open"] = (tokens, at) =>
    `<p><code class="formula-open">${escapeHtml(tokens[at]?.content ?? "")}</code></p>\n`;
}

/**
 * Attaches punctuation to the formula before it, since WebKit would break the line between them.
 */
function joinPunctuation(state: StateCore): void {
  for (const { children } of state.tokens) {
    for (const [at, token] of (children ?? []).entries()) {
      const next = children?.[at + 1];
      if (token.type !== "math_inline" || next?.type !== "text" || isDisplayed(token.meta))
        continue;
      token.info = /^[,.;:!?)\]’”]+/u.exec(next.content)?.[0] ?? "";
      next.content = next.content.slice(token.info.length);
    }
  }
}

const isDisplayed = (meta: unknown): boolean => (meta as Meta | null)?.isDisplay === true;
type Meta = { isDisplay: boolean };

/**
 * Removes line breaks next to display formulas. In a cell or a heading, makes the formula inline.
 */
function fitDisplay(state: StateCore): void {
  for (const [at, { children }] of state.tokens.entries()) {
    if (!children?.some(({ meta }) => isDisplayed(meta))) continue;
    const isInBlock = /^(?:paragraph|note)_open$/u.test(state.tokens[at - 1]?.type ?? "");
    for (const [place, token] of children.entries()) {
      if (!isDisplayed(token.meta)) continue;
      if (!isInBlock) token.meta = { isDisplay: false };
      else
        for (const beside of [children[place - 1], children[place + 1]])
          if (beside?.type === "softbreak") Object.assign(beside, { type: "text", content: "\n" });
    }
  }
}

/** Environments that are formulas without delimiters. */
const ENVIRONMENT =
  /^\\begin\{((?:equation|align|alignat|gather|aligned|alignedat|gathered|split|cases|dcases|rcases|array|subarray|[pbBvV]?matrix|smallmatrix|CD)\*?)\}/u;
/** Content that makes a formula a display formula, even within a sentence. */
const DISPLAY = /\\\\|\\tag(?![a-z])|\\begin\{(?:equation|align|alignat|gather|CD)\*?\}/u;

/** Delimiters of a formula. Those of an environment are part of it. */
type Marks = { open: string; close: string; isPart?: boolean };

/** Delimiters of a possible display formula. */
function blockMarks(text: string): Marks | null {
  if (text.startsWith("$$")) return { open: "$$", close: "$$" };
  if (text.startsWith("\\[")) return { open: "\\[", close: "\\]" };
  const [open, name] = ENVIRONMENT.exec(text) ?? [];
  return open === undefined ? null : { open, close: `\\end{${name}}`, isPart: true };
}

/** Delimiters at `start`. */
function marksAt(src: string, start: number, max: number): Marks | null {
  if (src.startsWith("\\(", start)) return { open: "\\(", close: "\\)" };
  const marks = blockMarks(src.slice(start, start + 30));
  if (marks) return marks;
  const right = src[start + 1];
  if (src[start] !== "$" || start + 1 >= max || right === undefined || /\s/u.test(right)) {
    return null;
  }
  return { open: "$", close: "$" };
}

function inlineMath(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  if (src[pos] !== "$" && src[pos] !== "\\") return false;
  const boxed = endOfBox(src, pos, posMax);
  const marks =
    boxed > 0 ? { open: "\\boxed{", close: "}", isPart: true } : marksAt(src, pos, posMax);
  if (!marks) return false;
  const from = pos + marks.open.length;
  const to = boxed > 0 ? boxed - 1 : endFor(state, from, marks.close);
  const end = to + marks.close.length;
  const content = src.slice(from, Math.max(from, to)).trim();
  // Numbers in escaped brackets are a citation.
  if (to < 0 || content === "" || (marks.open === "\\[" && /^[\d\s,–-]+$/u.test(content)))
    return false;
  if (!silent) {
    const token = state.push("math_inline", "math", 0);
    token.content = marks.isPart === true ? src.slice(pos, end) : content;
    token.markup = marks.close;
    token.meta = { isDisplay: boxed <= 0 && isDisplay(src, pos, end, marks.open) };
  }
  state.pos = end;
  return true;
}

const LONGEST_BOX = 1000;

/** End of a `\boxed{…}` that a model wrote without delimiters; 0 if there is none. */
function endOfBox(src: string, from: number, max: number): number {
  if (!src.startsWith("\\boxed{", from)) return 0;
  let depth = 0;
  const end = Math.min(max, from + LONGEST_BOX);
  for (let at = from + "\\boxed".length; at < end && src[at] !== "\n"; at++) {
    if (src[at] === "\\") at += 1;
    else if (src[at] === "{") depth += 1;
    else if (src[at] === "}" && --depth === 0) return at + 1;
  }
  return 0;
}

/**
 * Checks if a formula is a display formula. Double dollar signs within a sentence are inline,
 * unless their content needs lines of its own.
 */
function isDisplay(src: string, from: number, to: number, open: string): boolean {
  if (open.length < 2 || open === "\\(") return false;
  const formula = src.slice(from, to);
  if (open !== "$$" || DISPLAY.test(formula)) return true;
  const before = src.slice(src.lastIndexOf("\n", from - 1) + 1, from);
  const after = /[^\n]*/u.exec(src.slice(to))?.[0] ?? "";
  return before.trim() === "" && (formula.includes("\n") || /^[\s.,;:!?]*$/u.test(after));
}

/** Position in each text after which a closing delimiter is known to be missing. */
const without = new WeakMap<StateInline, Map<string, number>>();

/** Cached `endOf`: a text full of opening delimiters is searched only once for a closing one. */
function endFor(state: StateInline, from: number, close: string): number {
  const known = without.get(state) ?? new Map<string, number>();
  without.set(state, known);
  if (from >= (known.get(close) ?? Infinity)) return -1;
  const to = endOf(state.src, from, state.posMax, close);
  // A dollar sign that cannot close does not rule out a later one.
  if (to < 0 && close.startsWith("\\")) known.set(close, from);
  return to;
}

/** Position of the closing delimiter; -1 if there is none or the first one cannot close. */
function endOf(src: string, from: number, max: number, close: string): number {
  for (let at = src.indexOf(close, from); at >= 0 && at < max; at = src.indexOf(close, at + 1)) {
    if (close.startsWith("\\")) return at;
    if (src[at - 1] === "\\") continue;
    const closes = !/\s/u.test(src[at - 1] ?? "") && !/\d/u.test(src[at + 1] ?? "");
    return close === "$$" || closes ? at : -1;
  }
  return -1;
}

/**
 * A display formula is a paragraph, including the text after its end. While its end may still
 * arrive, its source is shown; without an end it is text.
 */
function blockMath(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const start = textOf(state, first);
  const marks = blockMarks(start);
  if (!marks || (state.sCount[first] ?? 0) - state.blkIndent >= 4) return false;
  const end = endOfBlock(state, first, last, marks);
  if (end === null) return false;
  if (silent) return true;
  let next = end.line;
  if (end.hasWords) next = endOfParagraph(state, next, last);
  const content = state.getLines(first, next, state.blkIndent, false).trim();
  state.line = next;
  if (end.isOpen) {
    const token = state.push("math_open", "math", 0);
    token.block = true;
    token.content = content;
    token.map = [first, next];
    return true;
  }
  state.push("paragraph_open", "p", 1).map = [first, next];
  const inline = state.push("inline", "", 0);
  inline.content = content;
  inline.map = [first, next];
  inline.children = [];
  state.push("paragraph_close", "p", -1);
  return true;
}

type BlockEnd = { line: number; hasWords: boolean; isOpen: boolean };

/** End of a formula that begins at `first`; null if it has no end or is part of a sentence. */
function endOfBlock(state: StateBlock, first: number, last: number, marks: Marks): BlockEnd | null {
  const { open, close } = marks;
  const start = textOf(state, first).slice(open.length);
  const isBare = start === "";
  let hasContent = !isBare;
  let isBroken = false;
  for (let line = first; line < last; line++) {
    const text = line === first ? start : textOf(state, line);
    const isOutside = (state.sCount[line] ?? 0) < state.blkIndent;
    if (line > first && text === "") {
      // TeX does not allow empty lines within a formula, but models write some at its edges.
      isBroken ||= hasContent;
      continue;
    }
    const at = positionOf(close, text);
    if (isBroken && at !== 0) return null;
    if (isOutside && !isBare) return null;
    if (at >= 0) {
      const hasWords = text.slice(at + close.length).trim() !== "";
      if (line === first && hasWords) return null;
      return { line: line + 1, hasWords, isOpen: false };
    }
    hasContent ||= line > first;
  }
  return mayGoOn(state, last) ? { line: last, hasWords: false, isOpen: true } : null;
}

function positionOf(close: string, text: string): number {
  if (close !== "$$") return text.indexOf(close);
  for (let at = text.indexOf("$$"); at >= 0; at = text.indexOf("$$", at + 1))
    if (text[at - 1] !== "\\") return at;
  return -1;
}
