import { BlockReader, type Block } from "./blocks";
import { decodeEntities } from "./entities";
import { PieceReader } from "./pieces";
import { fold } from "./query";
import { joinTables } from "./tables";

/**
 * Separator of paragraphs, items and cells, across which no match extends. No query contains it.
 */
export const BREAK = "\0";

/** Elements whose text is separated from the rest. */
export const BREAKING = ["p", "li", "td", "th", "h3", "h4", "h5", "h6", "pre", "div", "blockquote"];

const CAPTION = /<figcaption>[\s\S]*?<\/figcaption>/gu;
const TAG = /<\/?([a-z][a-z\d]*)[^>]*>/gu;
/** Visible text of HTML rendered by `md`. The caption of code is not part of the message. */
function textOfHtml(html: string): string {
  const text = html
    .replace(CAPTION, BREAK)
    .replace(TAG, (_, name: string) => (BREAKING.includes(name) ? BREAK : ""));
  return decodeEntities(text);
}

/** Text of blocks that are rendered together. */
function textOfBlocks(blocks: Block[]): string {
  return joinTables(blocks)
    .map((block) => {
      if (block.kind === "code") return block.code;
      if (block.kind === "html") return textOfHtml(block.html);
      // Only the head of the first part is rendered.
      const parts = block.parts.map((html, at) =>
        at > 0 ? (html.split("<tbody>")[1] ?? "") : html,
      );
      return textOfHtml(parts.join(BREAK));
    })
    .join(BREAK);
}

/** A part of the text, folded on first use, with the number of matches of the last pattern. */
class Part {
  #shown: (() => string) | null;
  #folded = "";
  #pattern: RegExp | null = null;
  #count = 0;

  constructor(shown: () => string) {
    this.#shown = shown;
  }

  get isFolded(): boolean {
    return this.#shown === null;
  }

  get folded(): string {
    if (this.#shown) this.#folded = fold(this.#shown());
    this.#shown = null;
    return this.#folded;
  }

  count(pattern: RegExp): number {
    if (pattern !== this.#pattern) {
      this.#pattern = pattern;
      this.#count = 0;
      // There may be hundreds of thousands of matches, so none is stored.
      pattern.lastIndex = 0;
      while (pattern.test(this.folded)) this.#count += 1;
    }
    return this.#count;
  }
}

/** Time slice for folding. */
const FOLDING_MS = 4;

/** Input of a message's text. */
type Source = { role: string; text: string; thinking: string; writing: boolean };

/**
 * Limits of a piece of thinking or of a question. Each piece is a block of its own, so that a line
 * of megabytes is laid out in steps.
 */
export const PIECE = { lines: 40, characters: 4000 };

/**
 * Searchable text of a message, as shown and folded: first the thinking, then the text. An answer
 * is parsed by the same reader as for rendering, so that both drop the same Markdown syntax. While
 * it grows, only the changed part is read and counted again.
 */
export class ShownText {
  #thoughts: Part[] = [];
  #text: Part[] = [];
  #pieces = new PieceReader(PIECE);
  #texts: string[] = [];
  #blocks: BlockReader | null = null;
  #groups = new WeakMap<Block[], Part>();
  #source: Source | null = null;

  /** Reads the changes of `source` within a time slice. Returns false if there is more to read. */
  read({ role, text, thinking, writing }: Source): boolean {
    const before = this.#source;
    if (before?.text !== text || before.thinking !== thinking || before.writing !== writing) {
      if (thinking !== before?.thinking) this.#readThoughts(thinking);
      if (role === "user")
        this.#text = new PieceReader(PIECE).read(text).map((piece) => new Part(() => piece));
      else if (!this.#readAnswer(text, writing)) return false;
      this.#source = { role, text, thinking, writing };
    }
    return this.#fold();
  }

  count(pattern: RegExp): number {
    return this.#parts().reduce((sum, part) => sum + part.count(pattern), 0);
  }

  /** Number of matches in the thinking. */
  countThoughts(pattern: RegExp): number {
    return this.#thoughts.reduce((sum, part) => sum + part.count(pattern), 0);
  }

  /** Start of a match in the folded text. */
  offsetOf(pattern: RegExp, nth: number): number {
    let before = nth;
    let offset = 0;
    for (const part of this.#parts()) {
      const count = part.count(pattern);
      if (before < count) return offset + ([...part.folded.matchAll(pattern)][before]?.index ?? 0);
      before -= count;
      offset += part.folded.length;
    }
    return offset;
  }

  /** Number of matches that begin before an offset. */
  countBefore(pattern: RegExp, offset: number): number {
    let sum = 0;
    let from = 0;
    for (const part of this.#parts()) {
      const to = from + part.folded.length;
      if (to <= offset) sum += part.count(pattern);
      else
        for (const { index } of part.folded.matchAll(pattern))
          if (from + index < offset) sum += 1;
          else return sum;
      from = to;
    }
    return sum;
  }

  #parts(): Part[] {
    return [...this.#thoughts, ...this.#text];
  }

  /** Folds parts within a time slice. Returns false if there are more. */
  #fold(): boolean {
    const end = performance.now() + FOLDING_MS;
    for (const part of this.#parts()) {
      if (part.isFolded) continue;
      if (performance.now() >= end) return false;
      void part.folded;
    }
    return true;
  }

  #readThoughts(thinking: string): void {
    const texts = this.#pieces.read(thinking);
    this.#thoughts = texts.map((text, at) => {
      const kept = this.#texts[at] === text ? this.#thoughts[at] : undefined;
      return kept ?? new Part(() => text);
    });
    this.#texts = texts;
  }

  #readAnswer(text: string, writing: boolean): boolean {
    const reader = (this.#blocks ??= new BlockReader());
    const { groups, done } = reader.read(text, writing, () => true);
    if (!done) return false;
    this.#text = groups.map((blocks) => {
      const kept = this.#groups.get(blocks) ?? new Part(() => textOfBlocks(blocks));
      this.#groups.set(blocks, kept);
      return kept;
    });
    // Blocks of a finished answer are no longer needed.
    if (!writing) this.#blocks = null;
    return true;
  }
}
