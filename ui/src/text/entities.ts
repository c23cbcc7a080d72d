const ENTITIES: Record<string, string> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&#x27;": "'",
  "&nbsp;": "\u00A0",
};

/** Decodes the entities in HTML from markdown-it, highlight.js and Temml, which use no others. */
export function decodeEntities(html: string): string {
  return html.replace(/&(?:amp|lt|gt|quot|nbsp|#x27);/gu, (entity) => ENTITIES[entity] ?? "");
}
