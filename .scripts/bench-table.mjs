/** Lines of text, a column each for `[title, cell of a row]`; the first two columns are words, the others figures. */
export function table(rows, columns) {
  const cells = [
    columns.map(([title]) => title),
    ...rows.map((row) => columns.map(([, of]) => of(row))),
  ];
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => line[i].length)));
  const padded = (cell, i) => (i < 2 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]));
  return cells.map((line) => line.map(padded).join("  ").trimEnd()).join("\n");
}
