import katex from "katex";
import type { MarkdownIt, StateBlock, StateCore, StateInline } from "markdown-it";

/**
 * Formulas in Markdown: `$…$`, `\(…\)`, `$$…$$` and `\[…\]`.
 *
 * The rules run inside markdown-it, so code is never read as a formula and nothing inside a formula
 * is read as Markdown. A single `$` follows pandoc: the opening one has no space to its right, the
 * closing one no space to its left and no digit to its right; so `$5 and $10` stays money.
 */
export function math(md: MarkdownIt): void {
  md.inline.ruler.before("escape", "math", inlineMath);
  md.block.ruler.before("fence", "math", blockMath, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  md.core.ruler.push("math-punctuation", joinPunctuation);
  md.renderer.rules["math_inline"] = (tokens, at) => {
    const { content = "", info: after = "" } = tokens[at] ?? {};
    const inline = formula(content, false);
    return after === "" ? inline : `<span class="unbroken">${inline}${after}</span>`;
  };
  md.renderer.rules["math_block"] = (tokens, at) => formula(tokens[at]?.content ?? "", true);
  md.renderer.rules["math_open"] = (tokens, at) =>
    `<pre class="formula-open">${md.utils.escapeHtml(tokens[at]?.content ?? "")}</pre>\n`;
}

/** WebKit breaks the line between a formula and its comma, so what follows closely goes along. */
function joinPunctuation(state: StateCore): void {
  for (const { children } of state.tokens) {
    for (const [at, token] of (children ?? []).entries()) {
      const next = children?.[at + 1];
      if (token.type !== "math_inline" || next?.type !== "text") continue;
      token.info = /^[,.;:!?)\]’”]+/u.exec(next.content)?.[0] ?? "";
      next.content = next.content.slice(token.info.length);
    }
  }
}

/** Longer ones are no formula that anybody wrote, and would take long to set. */
const LONGEST = 2000;

const made = new Map<string, string>();
const MOST_MADE = 500;

/** TeX as MathML; the source itself when it is not TeX that KaTeX knows. */
export function formula(tex: string, display: boolean): string {
  // While a paragraph grows, it is drawn again with the formulas that it has already.
  const key = `${display ? "block" : "inline"} ${tex}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const html = make(tex, display);
  if (made.size >= MOST_MADE) made.clear();
  made.set(key, html);
  return html;
}

function make(tex: string, display: boolean): string {
  try {
    if (tex.length > LONGEST) throw new Error("too long");
    const html = katex.renderToString(tex, {
      displayMode: display,
      output: "mathml",
      throwOnError: true,
      strict: false,
      trust: false,
      maxExpand: 200,
    });
    // The sanitiser would keep the text of these wrappers beside the formula, and the content
    // security policy complains of inline styles.
    const bare = html
      .replace(/ style="[^"]*"/gu, "")
      .replace(/<annotation\b[^>]*>[\s\S]*?<\/annotation>/gu, "")
      .replace(/<\/?semantics>/gu, "")
      // TeX sets a thin space after the name of a function; browsers set none.
      .replace(/<mo>\u2061<\/mo>(?!<mo\b[^>]*>\()/gu, '$&<mspace width="0.17em"/>');
    return display ? `<div class="formula">${bare}</div>\n` : bare;
  } catch {
    const source = tex.replace(/&/gu, "&amp;").replace(/</gu, "&lt;").replace(/>/gu, "&gt;");
    return display ? `<pre class="formula-open">${source}</pre>\n` : `<code>${source}</code>`;
  }
}

/** How long the mark is that opens a formula at `start`, and what closes it. */
function marksAt(src: string, start: number, max: number): { open: number; close: string } | null {
  if (src.startsWith("\\(", start)) return { open: 2, close: "\\)" };
  if (src.startsWith("\\[", start)) return { open: 2, close: "\\]" };
  if (src.startsWith("$$", start)) return { open: 2, close: "$$" };
  const right = src[start + 1];
  if (src[start] !== "$" || start + 1 >= max || right === undefined || /\s/u.test(right)) {
    return null;
  }
  return { open: 1, close: "$" };
}

function inlineMath(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  if (src[pos] !== "$" && src[pos] !== "\\") return false;
  const marks = marksAt(src, pos, posMax);
  if (!marks) return false;
  const from = pos + marks.open;
  const to = endFor(state, from, marks.close);
  if (to < 0 || src.slice(from, to).trim() === "") return false;
  if (!silent) {
    const token = state.push("math_inline", "math", 0);
    token.content = src.slice(from, to).trim();
    token.markup = marks.close;
  }
  state.pos = to + marks.close.length;
  return true;
}

/** In each text, the place from which on a closing mark is known not to come. */
const without = new WeakMap<StateInline, Map<string, number>>();

/** As `endOf`, but a text full of opening marks is searched for the closing one only once. */
function endFor(state: StateInline, from: number, close: string): number {
  const known = without.get(state) ?? new Map<string, number>();
  without.set(state, known);
  if (from >= (known.get(close) ?? Infinity)) return -1;
  const to = endOf(state.src, from, state.posMax, close);
  // A dollar sign that cannot close says nothing of those after it.
  if (to < 0 && close.startsWith("\\")) known.set(close, from);
  return to;
}

/** Where the closing mark is; -1 when there is none, or the first one found cannot close. */
function endOf(src: string, from: number, max: number, close: string): number {
  for (let at = src.indexOf(close, from); at >= 0 && at < max; at = src.indexOf(close, at + 1)) {
    if (close.startsWith("\\")) return at;
    if (src[at - 1] === "\\") continue;
    const closes = !/\s/u.test(src[at - 1] ?? "") && !/\d/u.test(src[at + 1] ?? "");
    return close === "$$" || closes ? at : -1;
  }
  return -1;
}

/** A formula on lines of its own; one whose end has not come yet stays as its source. */
function blockMath(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const line = (at: number): string =>
    state.src.slice((state.bMarks[at] ?? 0) + (state.tShift[at] ?? 0), state.eMarks[at]);
  const start = line(first);
  const open = ["$$", "\\["].find((mark) => start.startsWith(mark));
  if (open === undefined || (state.sCount[first] ?? 0) - state.blkIndent >= 4) return false;
  const close = open === "$$" ? "$$" : "\\]";
  const head = start.slice(2);
  const sameLine = head.indexOf(close);
  // `$$x$$ and more` is a formula within a paragraph.
  if (sameLine >= 0 && head.slice(sameLine + 2).trim() !== "") return false;
  if (silent) return true;

  const body = [sameLine >= 0 ? head.slice(0, sameLine) : head];
  let next = first + 1;
  let closed = sameLine >= 0;
  for (; !closed && next < last; next++) {
    const text = line(next);
    const end = text.trimEnd().endsWith(close) ? text.lastIndexOf(close) : -1;
    body.push(end >= 0 ? text.slice(0, end) : text);
    closed = end >= 0;
  }
  state.line = next;
  const token = state.push(closed ? "math_block" : "math_open", "math", 0);
  token.block = true;
  token.content = closed ? body.join("\n").trim() : [start, ...body.slice(1)].join("\n");
  token.map = [first, state.line];
  return true;
}
