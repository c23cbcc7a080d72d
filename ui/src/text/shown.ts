import { BlockReader, type Block } from "./blocks";
import { decodeEntities } from "./entities";
import { PieceReader } from "./pieces";
import { fold } from "./query";
import { joinTables } from "./tables";

/** Stands between texts that a reader does not read as one: paragraphs, items, cells. No query holds it. */
export const BREAK = "\0";

/** The elements around whose text there is a break. */
export const BREAKING = ["p", "li", "td", "th", "h3", "h4", "h5", "h6", "pre", "div", "blockquote"];

const CAPTION = /<figcaption>[\s\S]*?<\/figcaption>/gu;
const TAG = /<\/?([a-z][a-z\d]*)[^>]*>/gu;
/** The text that is shown of HTML as `md` renders it; what stands above code is no text of the message. */
function textOfHtml(html: string): string {
  const text = html
    .replace(CAPTION, BREAK)
    .replace(TAG, (_, name: string) => (BREAKING.includes(name) ? BREAK : ""));
  return decodeEntities(text);
}

/** The text of blocks that are drawn together. */
function textOfBlocks(blocks: Block[]): string {
  return joinTables(blocks)
    .map((block) => {
      if (block.kind === "code") return block.code;
      if (block.kind === "html") return textOfHtml(block.html);
      // Only the first part's head is drawn.
      const parts = block.parts.map((html, at) =>
        at > 0 ? (html.split("<tbody>")[1] ?? "") : html,
      );
      return textOfHtml(parts.join(BREAK));
    })
    .join(BREAK);
}

/** A part of the text, folded when it is first asked for, and how often the pattern that was counted last matches it. */
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
      // There may be hundreds of thousands: none is kept.
      pattern.lastIndex = 0;
      while (pattern.test(this.folded)) this.#count += 1;
    }
    return this.#count;
  }
}

/** So long the parts of a text are folded at once. */
const FOLDING_MS = 4;

/** What the text of a message is made of. */
type Source = { role: string; text: string; thinking: string; writing: boolean };

/** How thoughts and questions are drawn: each piece in a block of its own, so that a line of megabytes is laid out in steps. */
export const PIECE = { lines: 40, characters: 4000 };

/**
 * The text of a message as it is shown, folded, to be searched: thoughts, then the text. An answer is read by the
 * reader that also reads it to be drawn, so that the same marks of Markdown are gone from both. While it grows, only
 * what has changed is read and counted again.
 */
export class ShownText {
  #thoughts: Part[] = [];
  #text: Part[] = [];
  #pieces = new PieceReader(PIECE);
  #texts: string[] = [];
  #blocks: BlockReader | null = null;
  #groups = new WeakMap<Block[], Part>();
  #source: Source | null = null;

  /** Reads what is new in `source`, or as much as a moment allows: false while there is more to read. */
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

  /** How many of the matches are in the thoughts. */
  countThoughts(pattern: RegExp): number {
    return this.#thoughts.reduce((sum, part) => sum + part.count(pattern), 0);
  }

  /** Where in the folded text the match begins. */
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

  /** How many matches begin before that place. */
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

  /** Folds as many parts as a moment allows: false while there are more. */
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
    // The blocks of an answer that no longer grows are not needed again.
    if (!writing) this.#blocks = null;
    return true;
  }
}
