import { BlockReader, type Block } from "./blocks";
import { decodeEntities } from "./entities";
import { PieceReader } from "./pieces";
import { fold } from "./query";
import { joinTables } from "./tables";
import { argumentsOf, harmlessName, resultOf } from "./tool-texts";

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

/**
 * A section of the text that is rendered by itself. It is folded on first use, and has the number
 * of matches of the last pattern.
 */
class Unit {
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

/** A part of a message as it is shown. */
export type ShownPart =
  | { kind: "text" | "thinking" | "tool-result"; text: string }
  | { kind: "tool-call"; name: string; arguments: string };

/**
 * Name of the tool that a part calls, else empty; and its text, arguments or result as they are
 * shown. `whole`: the content is rendered in one element, not in pieces.
 */
export function textsOf(part: ShownPart): { name: string; content: string; whole: boolean } {
  if (part.kind === "tool-call") {
    const { language, text } = argumentsOf(part.name, part.arguments);
    return { name: harmlessName(part.name), content: text, whole: language !== null };
  }
  if (part.kind !== "tool-result") return { name: "", content: part.text, whole: false };
  const result = resultOf(part.text);
  if (result.kind === "text") return { name: "", content: result.text, whole: false };
  const cells = [result.columns, ...result.rows].flat();
  return { name: "", content: cells.join(BREAK), whole: true };
}

/**
 * Limits of a piece of thinking, of a question, or of what a tool reads and returns. Each piece is
 * a block of its own, so that a line of megabytes is laid out in steps.
 */
export const PIECE = { lines: 40, characters: 4000 };

/** Searchable text of a part. */
interface PartText {
  readonly kind: ShownPart["kind"];
  readonly units: Unit[];
  /** Reads the changes of `part`. `isOpen`: it may grow. Returns false if there is more to read. */
  read(part: ShownPart, isOpen: boolean): boolean;
}

/** A part whose text is shown as it is, in pieces. */
class PlainText implements PartText {
  units: Unit[] = [];
  #part: ShownPart | null = null;
  #pieces = new PieceReader(PIECE);
  #texts: string[] = [];

  constructor(readonly kind: ShownPart["kind"]) {}

  read(part: ShownPart): boolean {
    if (part === this.#part) return true;
    this.#part = part;
    const { name, content, whole } = textsOf(part);
    const texts = [name, ...(whole ? [content] : this.#pieces.read(content))];
    this.units = texts.map((text, at) => {
      const kept = this.#texts[at] === text ? this.units[at] : undefined;
      return kept ?? new Unit(() => text);
    });
    this.#texts = texts;
    return true;
  }
}

/**
 * Markdown, parsed by the same reader as for rendering, so that both drop the same syntax. While it
 * grows, only the changed section is read and counted again.
 */
class MarkdownText implements PartText {
  readonly kind = "text";
  units: Unit[] = [];
  #read = { text: "", isOpen: false };
  #blocks: BlockReader | null = null;
  #groups = new WeakMap<Block[], Unit>();

  read(part: ShownPart, isOpen: boolean): boolean {
    const text = textsOf(part).content;
    if (text === this.#read.text && isOpen === this.#read.isOpen) return true;
    const reader = (this.#blocks ??= new BlockReader());
    const { groups, done } = reader.read(text, isOpen, () => true);
    if (!done) return false;
    this.units = groups.map((blocks) => {
      const kept = this.#groups.get(blocks) ?? new Unit(() => textOfBlocks(blocks));
      this.#groups.set(blocks, kept);
      return kept;
    });
    // Blocks of a finished text are no longer needed.
    if (!isOpen) this.#blocks = null;
    this.#read = { text, isOpen };
    return true;
  }
}

const countIn = (units: Unit[], pattern: RegExp): number =>
  units.reduce((sum, unit) => sum + unit.count(pattern), 0);

/** Input of a message's text. */
type Source = { role: string; shownParts: readonly ShownPart[]; writing: boolean };

/** Searchable text of a message, as shown and folded, part by part. */
export class ShownText {
  #parts: PartText[] = [];

  /** Reads the changes of `source` within a time slice. Returns false if there is more to read. */
  read({ role, shownParts, writing }: Source): boolean {
    this.#parts = shownParts.map(({ kind }, at) => {
      const kept = this.#parts[at];
      if (kept?.kind === kind) return kept;
      return kind === "text" && role !== "user" ? new MarkdownText() : new PlainText(kind);
    });
    const last = shownParts.length - 1;
    const areRead = shownParts.every(
      (part, at) => this.#parts[at]?.read(part, writing && at === last) ?? false,
    );
    return areRead && this.#fold();
  }

  count(pattern: RegExp): number {
    return countIn(this.#units(), pattern);
  }

  /** Index of the part with a match, and index of the match in it. */
  placeOf(pattern: RegExp, nth: number): { part: number; nthInPart: number } {
    let nthInPart = nth;
    const part = this.#parts.findIndex(({ units }) => {
      const count = countIn(units, pattern);
      if (nthInPart < count) return true;
      nthInPart -= count;
      return false;
    });
    return { part, nthInPart };
  }

  /** Start of a match in the folded text. */
  offsetOf(pattern: RegExp, nth: number): number {
    let before = nth;
    let offset = 0;
    for (const unit of this.#units()) {
      const count = unit.count(pattern);
      if (before < count) return offset + ([...unit.folded.matchAll(pattern)][before]?.index ?? 0);
      before -= count;
      offset += unit.folded.length;
    }
    return offset;
  }

  /** Number of matches that begin before an offset. */
  countBefore(pattern: RegExp, offset: number): number {
    let sum = 0;
    let from = 0;
    for (const unit of this.#units()) {
      const to = from + unit.folded.length;
      if (to <= offset) sum += unit.count(pattern);
      else
        for (const { index } of unit.folded.matchAll(pattern))
          if (from + index < offset) sum += 1;
          else return sum;
      from = to;
    }
    return sum;
  }

  #units(): Unit[] {
    return this.#parts.flatMap(({ units }) => units);
  }

  /** Folds the text within a time slice. Returns false if there is more. */
  #fold(): boolean {
    const end = performance.now() + FOLDING_MS;
    for (const unit of this.#units()) {
      if (unit.isFolded) continue;
      if (performance.now() >= end) return false;
      void unit.folded;
    }
    return true;
  }
}
