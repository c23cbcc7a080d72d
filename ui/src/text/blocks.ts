import type { Env, Token } from "markdown-it";
import { languageOf } from "./code";
import { LongFence } from "./fence";
import { md } from "./markdown";
import { mend } from "./mend";
import { cutFor, endOfWindow } from "./window";

/**
 * A top-level block of an answer. `html` is not sanitised yet; `joined` continues the previous
 * block.
 */
export type Block =
  | { id: number; kind: "html"; html: string; joined: boolean }
  | { id: number; kind: "table"; html: string; joined: boolean }
  | { id: number; kind: "code"; code: string; language: string; open: boolean };

/**
 * Blocks read so far, in groups; a full group stays the same object. `done`: nothing is left to
 * read.
 */
export type Reading = { groups: Block[][]; done: boolean };

/** Limits of blocks and characters per group. An update only affects the last group. */
const GROUP = 32;
const GROUP_SIZE = 20_000;

const UNCUT = { type: "", head: "", block: -1 };

/**
 * Parses growing Markdown into blocks. A final block is never parsed again, and an unchanged block
 * keeps its identity, so the cost of an update is that of its last block.
 *
 * No block is longer than a window: a longer one is split at the least harmful position, which does
 * not depend on how the text arrives. So no update costs more than one window, whatever a model
 * writes.
 */
export class BlockReader {
  #source = "";
  /** Full groups of final blocks, and the final blocks of the group in progress. */
  #full: Block[][] = [];
  #part: Block[] = [];
  #count = 0;
  /** Latest blocks by id, final or not. */
  #shown: Block[] = [];
  /** Length of the source that the final blocks cover. */
  #offset = 0;
  /**
   * Block that was split: the type of its first token, the head of a table, and the id of the block
   * that continues it.
   */
  #cut = UNCUT;
  #fence: LongFence | null = null;
  #env: Env = {};
  /** Link definitions of the whole text, once it was read to its end. */
  #found: Env = {};
  /** True if the text has link definitions, which may follow their links. */
  #defines = false;
  /** True if the finished text was read from its start with all link definitions. */
  #complete = false;

  /**
   * Returns the blocks of `source`. `open`: more text may follow. `enough`: returns true to leave
   * the rest of a long text to the next call.
   */
  read(source: string, open: boolean, enough: () => boolean = () => false): Reading {
    const text = source.includes("\r") ? source.replace(/\r\n?/gu, "\n") : source;
    if (!text.startsWith(this.#source)) this.#restart();
    if (open && this.#complete) this.#again();
    this.#source = text;
    for (;;) {
      this.#found = this.#env;
      const live = this.#advance(open, enough);
      if (live === null) return this.#reading(this.#shown.slice(this.#count), false);
      if (open || this.#complete || !this.#defines) {
        this.#shown.length = this.#count + live.length;
        return this.#reading(live, true);
      }
      // Links before their definition need a second pass.
      this.#again(this.#found);
      this.#complete = true;
    }
  }

  /**
   * Finalises blocks as far as possible and returns the ones after them; null if there is more to
   * read.
   */
  #advance(open: boolean, enough: () => boolean): Block[] | null {
    for (;;) {
      const end = endOfWindow(this.#source, this.#offset);
      if (this.#fence) {
        const live = this.#readFence(this.#fence, open);
        if (live) return live;
      } else if (end < this.#source.length) this.#readWindow(end);
      else return this.#readTail(open);
      if (enough()) return null;
    }
  }

  /** Parses the text after the final blocks, which is shorter than a window. */
  #readTail(open: boolean): Block[] {
    const tail = this.#cut.head + this.#source.slice(this.#offset);
    const text = open ? mend(tail) : tail;
    const env: Env = { references: { ...this.#env.references }, open };
    const groups = topLevel(md.parse(text, env));
    const lines = starts(text);
    this.#defines ||= Object.keys(env.references ?? {}).length > 0;
    if (!open) {
      this.#found = env;
      return groups.map((group, at) =>
        this.#keep(group, text, lines, env, this.#count + at, false),
      );
    }
    // Only the last line can still change its meaning, so a block is final once the next one begins
    // on a complete line.
    const completeLines = tail.split("\n").length - 1;
    const next = groups.findLastIndex((group, at) => at > 0 && group.from < completeLines);
    const live: Block[] = [];
    for (const [at, group] of groups.entries()) {
      const last = at === groups.length - 1;
      const block = this.#keep(group, text, lines, env, this.#count + live.length, last);
      if (at < next) this.#fix(block);
      else live.push(block);
    }
    if (next > 0) this.#consume(tail, lines[groups[next]?.from ?? 0] ?? 0);
    return live;
  }

  /** Parses a window with more text after it: all of its blocks except the last are complete. */
  #readWindow(end: number): void {
    const text = this.#cut.head + this.#source.slice(this.#offset, end);
    const env: Env = { references: { ...this.#env.references }, open: true };
    const groups = topLevel(md.parse(text, env));
    const lines = starts(text);
    const last = groups.at(-1);
    if (!last) {
      this.#consume(text, text.length);
      return;
    }
    for (const group of groups.slice(0, -1)) {
      this.#fix(this.#keep(group, text, lines, env, this.#count, false));
    }
    const from = lines[last.from] ?? 0;
    if (groups.length > 1) {
      this.#consume(text, from);
      return;
    }
    const [first] = last.tokens;
    if (first?.type === "fence") {
      const content = lines[last.from + 1] ?? text.length;
      const indent = text.slice(from).search(/[^ ]/u);
      this.#fence = new LongFence(first, indent, this.#offset - this.#cut.head.length + content);
      return;
    }
    const { at, head } = cutFor(last.tokens, text, lines);
    const piece = text.slice(0, at);
    const [group] = topLevel(md.parse(piece, env));
    if (group) this.#fix(this.#keep(group, piece, starts(piece), env, this.#count, false));
    this.#consume(text, at);
    this.#cut = { type: first?.type ?? "", head, block: this.#count };
  }

  /** Reads a code block that is longer than a window; null once its end is found. */
  #readFence(fence: LongFence, open: boolean): Block[] | null {
    const end = fence.read(this.#source);
    const { code, language } = fence;
    const live = open && end === null;
    const block = this.#same({ id: this.#count, kind: "code", code, language, open: live });
    if (end === null || !end.final) return [block];
    this.#fix(block);
    this.#fence = null;
    this.#cut = UNCUT;
    this.#offset = end.at;
    return null;
  }

  /** Marks `text` up to `to` as final. */
  #consume(text: string, to: number): void {
    this.#offset += to - this.#cut.head.length;
    const known = Object.keys(this.#env.references ?? {}).length;
    const env: Env = { references: { ...this.#env.references } };
    if (text.slice(0, to).includes("]:")) md.parse(text.slice(0, to), env);
    if (Object.keys(env.references ?? {}).length > known) {
      this.#env = env;
      this.#defines = true;
    }
    this.#cut = UNCUT;
  }

  #fix(block: Block): void {
    this.#part.push(block);
    this.#count += 1;
    if (!isFull(this.#part)) return;
    this.#full.push(this.#part);
    this.#part = [];
  }

  #reading(live: Block[], done: boolean): Reading {
    const groups = [...this.#full];
    let group = [...this.#part];
    for (const block of live) {
      group.push(block);
      if (!isFull(group)) continue;
      groups.push(group);
      group = [];
    }
    if (group.length > 0) groups.push(group);
    return { groups, done };
  }

  #restart(): void {
    this.#again();
    this.#shown = [];
    this.#defines = false;
  }

  /** Restarts from the beginning. The previous blocks stay visible until they are read again. */
  #again(env: Env = {}): void {
    this.#env = env;
    this.#complete = false;
    this.#full = [];
    this.#part = [];
    this.#count = 0;
    this.#offset = 0;
    this.#cut = UNCUT;
    this.#fence = null;
  }

  #keep(group: Group, text: string, lines: number[], env: Env, id: number, open: boolean): Block {
    const [first] = group.tokens;
    if (group.tokens.length === 1 && first?.type === "fence") {
      const end = text.slice(lines[group.to - 1], lines[group.to]);
      const closed = end.trim().startsWith(first.markup) && group.to - group.from > 1;
      const code = first.content.replace(/\n$/u, "");
      return this.#same({
        id,
        kind: "code",
        code,
        language: languageOf(first),
        open: open && !closed,
      });
    }
    const html = md.renderer.render(group.tokens, md.options, env);
    const joined = id === this.#cut.block && group.from === 0 && first?.type === this.#cut.type;
    const kind = first?.type === "table_open" ? "table" : "html";
    return this.#same({ id, kind, html, joined });
  }

  /** Returns the previous block object if it is unchanged. */
  #same(block: Block): Block {
    const before = this.#shown[block.id];
    const kept = before && alike(before, block) ? before : block;
    this.#shown[block.id] = kept;
    return kept;
  }
}

function isFull(group: Block[]): boolean {
  const sizes = group.map((block) => (block.kind === "code" ? block.code : block.html).length);
  return group.length >= GROUP || sizes.reduce((sum, size) => sum + size, 0) >= GROUP_SIZE;
}

function alike(a: Block, b: Block): boolean {
  if (a.kind === "code") {
    return b.kind === "code" && a.code === b.code && a.language === b.language && a.open === b.open;
  }
  return b.kind === a.kind && a.html === b.html && a.joined === b.joined;
}

type Group = { tokens: Token[]; from: number; to: number };

/** Tokens and lines of each top-level block. */
function topLevel(tokens: Token[]): Group[] {
  const groups: Group[] = [];
  for (const token of tokens) {
    const opens = token.level === 0 && token.nesting >= 0;
    const current = groups.at(-1);
    if (opens) groups.push({ tokens: [token], from: token.map?.[0] ?? 0, to: token.map?.[1] ?? 0 });
    else current?.tokens.push(token);
  }
  return groups;
}

/** Offsets of the line starts, and of the end. */
function starts(text: string): number[] {
  const found = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) found.push(at + 1);
  found.push(text.length);
  return found;
}
