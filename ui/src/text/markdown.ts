import markdownIt, { type MarkdownIt } from "markdown-it";
import { cells } from "./cells";
import { escapeHtml, languageOf } from "./code";
import { emphasis } from "./emphasis";
import { fences } from "./fence";
import { languageName } from "./languages";
import { address, withTextAlone, withoutDeceptiveCharacters } from "./links";
import { math } from "./math";
import { notes } from "./notes";
import { tags } from "./tags";
import { tasks } from "./tasks";

/** Markdown parser for answers: no raw HTML, no remote content, and links only to plain URLs. */
export const md: MarkdownIt = markdownIt({ html: false, linkify: true, breaks: true });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => address(url) !== null;
const normalise = md.normalizeLink.bind(md);
md.normalizeLink = (url) => withTextAlone(normalise(url));
md.use(math);
md.use(cells);
md.use(tags);
md.use(emphasis);
md.use(fences);
md.use(notes);
md.use(tasks);

// A row of opening brackets is searched only once for a closing one.
md.inline.ruler.before("link", "bracket", (state, silent) => {
  const { src, pos } = state;
  if (src[pos] !== "[" || src.indexOf("]", pos) >= 0) return false;
  if (!silent) state.pending += "[";
  state.pos += 1;
  return true;
});

/** Images are never loaded. Each becomes a link to its URL. */
md.renderer.rules.image = (tokens, at) => {
  const token = tokens[at];
  const source = String(token?.attrGet("src") ?? "");
  const label = withoutDeceptiveCharacters(token?.content ?? "") || source;
  return `<a href="${escapeHtml(source)}">${escapeHtml(label)}</a>`;
};

md.renderer.rules.fence = (tokens, at) => {
  const token = tokens[at];
  return codeFigure(token?.content ?? "", languageOf(token));
};
md.renderer.rules.code_block = (tokens, at) => codeFigure(tokens[at]?.content ?? "", "");

// A wide table scrolls horizontally, also by keyboard. `TableBlock.svelte` renders top-level
// tables.
md.renderer.rules["table_open"] = () => `<div class="table" tabindex="0"><table>\n`;
md.renderer.rules["table_close"] = () => `</table></div>\n`;

/** Length, in characters, up to which a cell does not wrap. */
const SHORT = 24;

// Replaces the inline styles by which markdown-it aligns cells, since they are not allowed.
for (const rule of ["th_open", "td_open"]) {
  md.renderer.rules[rule] = (tokens, at) => {
    const token = tokens[at];
    const side = /text-align:(\w+)/u.exec(String(token?.attrGet("style") ?? ""))?.[1];
    const length = tokens[at + 1]?.content.length ?? 0;
    const kind = length <= SHORT ? "" : ` class="long"`;
    return `<${token?.tag}${side ? ` align="${side}"` : ""}${kind}>`;
  };
}

md.core.ruler.push("link-text", (state) => {
  for (const block of state.tokens) {
    let inLink = 0;
    for (const token of block.children ?? []) {
      inLink += token.type === "link_open" ? 1 : token.type === "link_close" ? -1 : 0;
      if (inLink > 0) token.content = withoutDeceptiveCharacters(token.content);
    }
  }
});

/**
 * Shifts headings: level 1 is the conversation, level 2 a message, and those of an answer follow.
 */
md.core.ruler.push("heading-levels", (state) => {
  for (const token of state.tokens) {
    if (token.type !== "heading_open" && token.type !== "heading_close") continue;
    token.tag = `h${Math.min(Number(token.tag.slice(1)) + 2, 6)}`;
  }
});

/**
 * Renders code in a list or quotation, like `CodeBlock.svelte` for top-level code. `colourCode`
 * highlights it after it is rendered.
 */
export function codeFigure(code: string, language: string): string {
  const name = escapeHtml(languageName(language));
  return (
    `<figure class="code"><figcaption>${name}<button type="button" class="copy" data-made aria-label="Copy code">Copy</button></figcaption>` +
    `<pre tabindex="0"><code data-language="${escapeHtml(language)}">${escapeHtml(code.replace(/\n$/u, ""))}</code></pre></figure>\n`
  );
}
