/** All whole sentences and lines. A full stop ends one only before a space: 5.5 is a number. */
const SENTENCES = /^[\s\S]*(?:[.!?](?=\s)|\n)/u;

/** What comes within this time is spoken as one, so that nothing is gone before it is heard. */
const GATHER_MS = 100;

/** Speaks the growing answer to screen readers, a sentence at a time. */
export class Announcer {
  /** What the polite live region holds. */
  spoken = $state("");
  #pending = "";
  #due: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  say(text: string): void {
    this.#pending = "";
    this.#speak(text);
  }

  hear(text: string): void {
    this.#pending += text;
    const sentences = SENTENCES.exec(this.#pending)?.[0];
    if (sentences === undefined) return;
    this.#pending = this.#pending.slice(sentences.length);
    this.#speak(plain(sentences));
  }

  /** Speaks what is left, then `closing`. */
  finish(closing: string): void {
    this.#speak(plain(this.#pending));
    this.#speak(closing);
    this.#pending = "";
  }

  #speak(words: string): void {
    // The break between two paragraphs says nothing, and must not take away what is being read out.
    if (words === "") return;
    this.#due.push(words);
    this.#timer ??= setTimeout(() => {
      this.spoken = this.#due.join(" ");
      this.#due = [];
      this.#timer = undefined;
    }, GATHER_MS);
  }
}

const plain = (markdown: string): string =>
  markdown
    .replace(/[*_`#>|]+/gu, "")
    .replace(/\s+/gu, " ")
    .trim();
