import katex from "katex";
import { escapeHtml } from "./code";

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
      .replace(/^<span class="katex">|<\/span>$/gu, "")
      .replace(/ style="[^"]*"/gu, "")
      .replace(/<annotation\b[^>]*>[\s\S]*?<\/annotation>/gu, "")
      .replace(/<\/?semantics>/gu, "")
      // TeX sets a thin space after the name of a function; browsers set none.
      .replace(/<mo>\u2061<\/mo>(?!<mo\b[^>]*>\()/gu, '$&<mspace width="0.17em"/>');
    return bare;
  } catch {
    return `<code${display ? ` class="formula-open"` : ""}>${escapeHtml(tex)}</code>`;
  }
}
