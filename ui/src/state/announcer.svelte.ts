/** All whole sentences and lines. A full stop ends one only before a space: 5.5 is a number. */
const SENTENCES = /^[\s\S]*(?:[.!?](?=\s)|\n)/u;

/** Speaks the growing answer to screen readers, a sentence at a time. */
export class Announcer {
  /** What the polite live region holds. */
  spoken = $state("");
  #pending = "";

  say(text: string): void {
    this.#pending = "";
    this.spoken = text;
  }

  hear(text: string): void {
    this.#pending += text;
    const sentences = SENTENCES.exec(this.#pending)?.[0];
    if (sentences === undefined) return;
    this.#pending = this.#pending.slice(sentences.length);
    this.spoken = plain(sentences);
  }

  /** Speaks what is left, then `closing`. */
  finish(closing: string): void {
    this.spoken = [plain(this.#pending), closing].filter(Boolean).join(" ");
    this.#pending = "";
  }
}

const plain = (markdown: string): string =>
  markdown
    .replace(/[*_`#>|]+/gu, "")
    .replace(/\s+/gu, " ")
    .trim();
