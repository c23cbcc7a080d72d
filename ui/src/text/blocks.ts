import type { Env, Token } from "markdown-it";
import { languageOf, md } from "./markdown";
import { mend } from "./mend";

/** A top-level piece of an answer. `html` still has to pass the sanitiser. */
export type Block =
  | { id: number; kind: "html"; html: string }
  | { id: number; kind: "code"; code: string; language: string; open: boolean };

/**
 * Reads a growing Markdown text as blocks. Blocks that can no longer change are never parsed again, and
 * those that have not changed keep their identity, so an update costs what its last block costs.
 */
export class BlockReader {
  #source = "";
  #fixed: Block[] = [];
  /** What was read last, fixed or not. */
  #blocks: Block[] = [];
  /** How much of the source the fixed blocks cover. */
  #offset = 0;
  #env: Env = {};

  /** The blocks of `source`; `open` while more text may follow. */
  read(source: string, open: boolean): Block[] {
    if (!source.startsWith(this.#source)) this.#restart();
    this.#source = source;
    const tail = source.slice(this.#offset);
    const text = open ? mend(tail) : tail;
    const tokens = md.parse(text, this.#env);
    const groups = topLevel(tokens);
    const lineStarts = starts(text);
    // Only the last line may still turn out to be something else, so a block is fixed when the one
    // after it begins on a complete line.
    const completeLines = tail.split("\n").length - 1;

    const live: Block[] = [];
    let consumed = 0;
    for (const [at, group] of groups.entries()) {
      const next = groups[at + 1];
      const id = this.#fixed.length + live.length;
      const made = { ...this.#block(group, text, lineStarts, open && next === undefined), id };
      const before = this.#blocks[id];
      const block = before && alike(before, made) ? before : made;
      const fixed = open && next !== undefined && next.from < completeLines && live.length === 0;
      if (!fixed) {
        live.push(block);
        continue;
      }
      this.#fixed = [...this.#fixed, block];
      consumed = lineStarts[next.from] ?? 0;
    }
    this.#offset += consumed;
    this.#blocks = [...this.#fixed, ...live];
    return this.#blocks;
  }

  #restart(): void {
    this.#fixed = [];
    this.#blocks = [];
    this.#offset = 0;
    this.#env = {};
  }

  #block(group: Group, text: string, lineStarts: number[], last: boolean): Block {
    const [first] = group.tokens;
    if (group.tokens.length === 1 && first?.type === "fence") {
      const end = text.slice(lineStarts[group.to - 1], lineStarts[group.to]);
      const closed = end.trim().startsWith(first.markup) && group.to - group.from > 1;
      const code = first.content.replace(/\n$/u, "");
      return { id: 0, kind: "code", code, language: languageOf(first), open: last && !closed };
    }
    return { id: 0, kind: "html", html: md.renderer.render(group.tokens, md.options, this.#env) };
  }
}

function alike(a: Block, b: Block): boolean {
  if (a.kind === "html") return b.kind === "html" && a.html === b.html;
  return b.kind === "code" && a.code === b.code && a.language === b.language && a.open === b.open;
}

type Group = { tokens: Token[]; from: number; to: number };

/** The tokens of each top-level block, with its lines. */
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

/** Where each line begins, and the end. */
function starts(text: string): number[] {
  const found = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) found.push(at + 1);
  found.push(text.length);
  return found;
}
