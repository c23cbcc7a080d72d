import hljs from "highlight.js/lib/common";

/** Above this, one block of code is shown without colours. */
const LONGEST = 200_000;

export function escapeHtml(text: string): string {
  return text
    .replace(/&/gu, "&amp;")
    .replace(/</gu, "&lt;")
    .replace(/>/gu, "&gt;")
    .replace(/"/gu, "&quot;");
}

/** The code as HTML with `hljs-…` classes; plain where the language is unknown. */
export function highlight(code: string, language: string): string {
  if (code.length > LONGEST || !hljs.getLanguage(language)) return escapeHtml(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

/** What a reader calls the language: `ts` is TypeScript. */
export function languageName(language: string): string {
  if (language === "") return "Text";
  return hljs.getLanguage(language)?.name?.split(",")[0] ?? language;
}

/** Lines of one piece of a growing block of code. */
const PIECE_LINES = 40;

/**
 * Highlights growing code in pieces: finished ones stay as they are and only the last is done again.
 * Closed code is done as a whole, so that a string or comment that spans pieces comes out right.
 */
export class CodeReader {
  #pieces: string[] = [];
  #done = "";

  read(code: string, language: string, open: boolean): string[] {
    if (!open) return [highlight(code, language)];
    if (!code.startsWith(this.#done)) {
      this.#pieces = [];
      this.#done = "";
    }
    for (;;) {
      const rest = code.slice(this.#done.length);
      const end = endOfLine(rest, PIECE_LINES);
      if (end < 0) return [...this.#pieces, highlight(rest, language)];
      const piece = rest.slice(0, end);
      this.#pieces = [...this.#pieces, highlight(piece, language)];
      this.#done += piece;
    }
  }
}

/** Where the `count`-th line ends, or -1 when there are not so many. */
function endOfLine(text: string, count: number): number {
  let at = 0;
  for (let line = 0; line < count; line++) {
    at = text.indexOf("\n", at) + 1;
    if (at === 0) return -1;
  }
  return at;
}
