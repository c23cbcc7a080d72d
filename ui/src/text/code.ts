import type { Token } from "markdown-it";

export function escapeHtml(text: string): string {
  return text
    .replace(/&/gu, "&amp;")
    .replace(/</gu, "&lt;")
    .replace(/>/gu, "&gt;")
    .replace(/"/gu, "&quot;");
}

/** First word of a fence's info string, in lower case. */
export function languageOf(token: Token | undefined): string {
  return token?.info.trim().split(/\s+/u)[0]?.toLowerCase() ?? "";
}
