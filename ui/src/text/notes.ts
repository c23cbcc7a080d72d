import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";
import { endOfParagraph, textOf } from "./lines";

/** A number, optionally after a word: `[^a]` is more likely a pattern. */
const NOTE = /^\[\^([\p{L}_-]{0,20}\d{1,3})\](:?)/u;

/** Footnotes: superscript numbers, and the notes where they are in the text. */
export function notes(md: MarkdownIt): void {
  md.block.ruler.before("reference", "note", note, { alt: ["paragraph"] });
  md.inline.ruler.before("link", "note-mark", noteMark);
  md.renderer.rules["note_open"] = () => `<p class="footnote">`;
  md.renderer.rules["note_close"] = () => "</p>\n";
  md.renderer.rules["note_mark"] = (tokens, at) =>
    `<sup>${md.utils.escapeHtml(tokens[at]?.content ?? "")}</sup>`;
}

function note(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const [mark, label, colon] = NOTE.exec(textOf(state, first)) ?? [];
  if (mark === undefined || colon === "" || (state.sCount[first] ?? 0) - state.blkIndent >= 4)
    return false;
  if (silent) return true;
  state.line = endOfParagraph(state, first + 1, last);
  state.push("note_open", "p", 1).map = [first, state.line];
  const inline = state.push("inline", "", 0);
  const text = state.getLines(first, state.line, state.blkIndent, false).trim();
  inline.content = `[^${label}] ${text.slice(mark.length).trim()}`;
  inline.map = [first, state.line];
  inline.children = [];
  state.push("note_close", "p", -1);
  return true;
}

function noteMark(state: StateInline, silent: boolean): boolean {
  if (!state.src.startsWith("[^", state.pos)) return false;
  const [, label] = NOTE.exec(state.src.slice(state.pos, state.pos + 40)) ?? [];
  if (label === undefined) return false;
  if (!silent) state.push("note_mark", "sup", 0).content = label;
  state.pos += label.length + 3;
  return true;
}
