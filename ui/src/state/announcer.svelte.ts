const SENTENCE = /[^.!?\n]*[.!?\n]+(?=\s|$)/gu;

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
    const sentences = this.#pending.match(SENTENCE)?.join("") ?? "";
    // The end of the text may be in the middle of a number or an abbreviation: wait for a space.
    if (sentences === "" || sentences.length === this.#pending.length) return;
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
