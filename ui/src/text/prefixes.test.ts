import { describe, expect, test } from "vitest";
import { type Block, BlockReader } from "./blocks";
import { corpus } from "./corpus";

/** Visible kind of a block: a paragraph, a list, a table. */
function kindOf(block: Block): string {
  if (block.kind !== "html") return block.kind;
  return /^<([a-z][a-z\d]*)/u.exec(block.html)?.[1] ?? "";
}

/** Exception: the line below a paragraph may turn it into a heading. */
const underlined = (kind: string, last: string): boolean => kind === "p" && /^h[3-6]$/u.test(last);

describe("what is shown of a beginning stays what it is", () => {
  test.each(corpus)("%#", (text) => {
    const whole = new BlockReader().read(text, false).groups.flat().map(kindOf);
    const reader = new BlockReader();
    for (let end = 1; end <= text.length; end++) {
      const kinds = reader.read(text.slice(0, end), true).groups.flat().map(kindOf);
      for (const [at, kind] of kinds.entries()) {
        const last = whole[at] ?? "nothing";
        if (kind !== last && !underlined(kind, last))
          expect.fail(
            `block ${at} is ${kind}, then ${last}: ${JSON.stringify(text.slice(0, end).slice(-60))}`,
          );
      }
    }
  });
});
