/** A search hit's snippet in parts; what was found lies between U+E000 and U+E001. */
export function parts(snippet: string): { text: string; hit: boolean }[] {
  return snippet
    .replace(/\s+/gu, " ")
    .split(/(\uE000[^\uE001]*\uE001?)/u)
    .filter((text) => text !== "")
    .map((text) => ({
      text: text.replace(/[\uE000\uE001]/gu, ""),
      hit: text.startsWith("\uE000"),
    }));
}
