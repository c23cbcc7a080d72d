import type { Token } from "markdown-it";
import { languageOf } from "./code";

/** A block of code that is too long to be parsed at each update: its lines are read once, as they come. */
export class LongFence {
  readonly language: string;
  readonly #closing: RegExp;
  readonly #indent: number;
  #lines = "";
  #last = "";

  /** `opening` is markdown-it's token of the block, `indent` its spaces, and `at` where its code begins. */
  constructor(
    opening: Token,
    indent: number,
    private at: number,
  ) {
    this.language = languageOf(opening);
    const [mark = "`"] = opening.markup;
    this.#closing = new RegExp(`^ {0,3}${mark}{${opening.markup.length},}[ \\t]*$`, "u");
    this.#indent = indent;
  }

  /** Where the block ends, and whether that is for good; null while its closing line has not come. */
  read(source: string): { at: number; final: boolean } | null {
    for (let end = source.indexOf("\n", this.at); end >= 0; end = source.indexOf("\n", this.at)) {
      const line = source.slice(this.at, end);
      this.#last = "";
      if (this.#closing.test(line)) return { at: end + 1, final: true };
      this.#lines += `${this.#unindented(line)}\n`;
      this.at = end + 1;
    }
    const line = source.slice(this.at);
    if (this.#closing.test(line)) {
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

  #unindented(line: string): string {
    let at = 0;
    while (at < this.#indent && line[at] === " ") at += 1;
    return line.slice(at);
  }
}
