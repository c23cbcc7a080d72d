/**
 * Formats rows as lines of text. `columns`: pairs of a title and a function of the row; the first
 * two are left-aligned.
 */
export function table(rows, columns) {
  const cells = [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, of]) => of(row))),
  ];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  const padded = (cell, i) => (i < 2 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]));
  return cells.map((line) => line.map(padded).join("  ").trimEnd()).join("\n");
}
