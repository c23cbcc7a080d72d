import type { Block } from "./blocks";

/** A block as it is rendered: the parts of a split table are one block again. */
export type Drawn =
  | Exclude<Block, { kind: "table" }>
  | { id: number; kind: "table"; parts: string[]; joined: boolean };

export function joinTables(blocks: Block[]): Drawn[] {
  const all: Drawn[] = [];
  for (const block of blocks) {
    const before = all.at(-1);
    if (block.kind !== "table") all.push(block);
    else if (block.joined && before?.kind === "table") before.parts.push(block.html);
    else all.push({ id: block.id, kind: "table", parts: [block.html], joined: block.joined });
  }
  return all;
}
