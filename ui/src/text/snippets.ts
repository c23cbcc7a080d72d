/** Formulas in short: the page's and the export's HTML hold much more for each. */
export function withoutFormulas(html: string): string {
  return html.replace(
    /<span class="math( formula)?( within)?" data-tex="([^"]*)">(?:<code[^>]*>[^<]*<\/code>|<math[\s\S]*?<\/math>)<\/span>/gu,
    (_, formula, within, tex) => `[${formula ? `formula${within ?? ""}` : "math"} ${tex}]`,
  );
}
