import type { MarkdownIt, StateBlock, Token } from "markdown-it";
import { languageOf } from "./code";
import { mayGoOn, textOf } from "./lines";

const FENCE = /^(`{3,}(?=[^`]*$)|~{3,})(.*)$/u;
/** Languages whose code may contain fences. */
const NESTING = /^\s*(?:markdown|md|mdx)(?![^\s{])/iu;

/** Nests fences with an info word in Markdown blocks: models forget to lengthen the outer fence. */
export function fences(md: MarkdownIt): void {
  md.block.ruler.before("fence", "markdown-fence", markdownFence, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
}

function markdownFence(state: StateBlock, first: number, last: number, silent: boolean): boolean {
  const [, markup = "", info = ""] = FENCE.exec(textOf(state, first)) ?? [];
  const indent = (state.sCount[first] ?? 0) - state.blkIndent;
  if (markup === "" || indent >= 4 || !NESTING.test(info)) return false;
  if (silent) return true;
  const lines = new FenceLines(markup, info);
  let line = first + 1;
  let closing = -1;
  let lastBare = -1;
  for (; line < last && closing < 0; line++) {
    const text = textOf(state, line);
    const before = (state.sCount[line] ?? 0) - state.blkIndent;
    if (text !== "" && before < 0) break;
    if (lines.closes(text, before)) closing = line;
    else if (text === markup) lastBare = line;
  }
  // If a closing fence is missing, the last bare one closes the block.
  if (closing < 0 && !mayGoOn(state, line)) closing = lastBare;
  const end = closing < 0 ? line : closing;
  state.line = closing < 0 ? line : closing + 1;
  const token = state.push("fence", "code", 0);
  token.info = info;
  token.content = state.getLines(first + 1, end, state.sCount[first] ?? 0, true);
  token.markup = markup;
  token.map = [first, state.line];
  return true;
}

/** Finds the closing fence of a code block, line by line. */
export class FenceLines {
  #inner = 0;
  readonly #nests: boolean;

  /** Takes the `markup` and `info` of the opening fence. */
  constructor(
    private readonly markup: string,
    private readonly info: string,
  ) {
    this.#nests = NESTING.test(info);
  }

  /** Copies the state, in order to test a line that may still grow. */
  copy(): FenceLines {
    const copy = new FenceLines(this.markup, this.info);
    copy.#inner = this.#inner;
    return copy;
  }

  /**
   * Returns true if the line closes the block. `line`: without its indentation of `indent` spaces.
   */
  closes(line: string, indent: number): boolean {
    if (!line.startsWith(this.markup) || (indent >= 4 && !this.#nests)) return false;
    const [, mark = "", info = ""] = FENCE.exec(line) ?? [];
    if (mark === "") return false;
    if (info.trim() !== "") {
      if (this.#nests) this.#inner += 1;
      return false;
    }
    if (this.#inner === 0) return indent < 4;
    this.#inner -= 1;
    return false;
  }
}

/**
 * A code block too long to be parsed at each update. Each of its lines is read once, as it arrives.
 */
export class LongFence {
  readonly language: string;
  readonly #fence: FenceLines;
  readonly #indent: number;
  #lines = "";
  #last = "";

  /**
   * `opening`: markdown-it's token of the block; `indent`: its indentation; `at`: start of its
   * code.
   */
  constructor(
    opening: Token,
    indent: number,
    private at: number,
  ) {
    this.language = languageOf(opening);
    this.#fence = new FenceLines(opening.markup, opening.info);
    this.#indent = indent;
  }

  /** End of the block, and whether it is final; null until the closing fence arrives. */
  read(source: string): { at: number; final: boolean } | null {
    for (let end = source.indexOf("\n", this.at); end >= 0; end = source.indexOf("\n", this.at)) {
      const line = source.slice(this.at, end);
      this.#last = "";
      if (this.#closes(line, this.#fence)) return { at: end + 1, final: true };
      this.#lines += `${this.#unindented(line)}\n`;
      this.at = end + 1;
    }
    const line = source.slice(this.at);
    if (this.#closes(line, this.#fence.copy())) {
      this.#last = "";
      return { at: source.length, final: false };
    }
    this.#last = this.#unindented(line);
    return null;
  }

  get code(): string {
    const code = this.#lines + this.#last;
    return code.endsWith("\n") ? code.slice(0, -1) : code;
  }

  #closes(line: string, fence: FenceLines): boolean {
    const indent = line.search(/[^ ]|$/u);
    return fence.closes(line.slice(indent).trimEnd(), indent);
  }

  #unindented(line: string): string {
    let at = 0;
    while (at < this.#indent && line[at] === " ") at += 1;
    return line.slice(at);
  }
}
