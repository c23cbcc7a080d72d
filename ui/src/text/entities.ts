const ENTITIES: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
  "&nbsp;": "\u00A0",
};

/** The text of HTML that markdown-it, highlight.js or Temml escaped: they use no other entities. */
export function decodeEntities(html: string): string {
  return html.replace(/&(?:amp|lt|gt|quot|nbsp|#x27);/gu, (entity) => ENTITIES[entity] ?? "");
}
