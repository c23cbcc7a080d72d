/** Abbreviates formulas, whose HTML is much longer on the page and in exports. */
export function withoutFormulas(html: string): string {
  return html.replace(
    /<span class="math( formula)?( within)?" data-tex="([^"]*)">(?:<code[^>]*>[^<]*<\/code>|<math[\s\S]*?<\/math>)<\/span>/gu,
    (_, formula, within, tex) => `[${formula ? `formula${within ?? ""}` : "math"} ${tex}]`,
  );
}
