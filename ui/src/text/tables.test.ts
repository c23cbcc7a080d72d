import { expect, test } from "vitest";
import { BlockReader } from "./blocks";
import { joinTables } from "./tables";

const rows = Array.from({ length: 200 }, (_, at) => `| ${at} | a cell |\n`).join("");
const table = `| a | b |\n|---|---|\n${rows}`;

test("a table that was read in parts is drawn as one, with every row", () => {
  const text = `Before.\n\n${table}\nAfter.`;
  const blocks = new BlockReader().read(text, false).groups.flat();
  const drawn = joinTables(blocks);
  expect(blocks.length).toBeGreaterThan(4);
  expect(drawn.map(({ kind }) => kind)).toEqual(["html", "table", "html"]);
  const [, joined] = drawn;
  const parts = joined?.kind === "table" ? joined.parts : [];
  const cells = parts.flatMap((html) => [...html.matchAll(/<td>(\d+)<\/td>/gu)]);
  expect(cells.map(([, number]) => Number(number))).toEqual([...Array(200).keys()]);
});

test("two tables stay two", () => {
  const blocks = new BlockReader().read(`${table}\n${table}`, false).groups.flat();
  expect(joinTables(blocks).map(({ kind }) => kind)).toEqual(["table", "table"]);
});

test("what is no table stays the same object, so that it is not drawn again", () => {
  const blocks = new BlockReader().read("One.\n\n- two\n\n```\nthree\n```", false).groups.flat();
  expect(joinTables(blocks)).toHaveLength(3);
  for (const [at, drawn] of joinTables(blocks).entries()) expect(drawn).toBe(blocks[at]);
});
