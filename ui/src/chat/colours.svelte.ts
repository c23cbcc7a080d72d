import { isKnownLanguage } from "../text/languages";
import type { Job } from "../text/highlighter";
import type { Run } from "../text/runs";
import { highlighter } from "../text/worker";

/** Length, in characters, above which finished code keeps the colours of its separate pieces. */
const LONGEST = 200_000;
/**
 * Number of characters after which a line stays plain: each run makes the layout of a long line
 * slower.
 */
const LONGEST_LINE = 5_000;

class Piece {
  runs = $state.raw<Run[]>([]);
  /** Last text that was submitted for highlighting, and whether the result is pending. */
  asked = "";
  pending = false;
}

/** Colours of one code block: piece by piece while it grows, and of the whole once it is closed. */
export class Colours {
  #pieces: Piece[] = [];
  #whole = "";
  /** Aborted when the block is unmounted, or if highlighting it at each update takes too long. */
  readonly #over = new AbortController();

  /**
   * Adds pieces until there are `count`. Not part of `of`: Svelte does not track state for the
   * reader that created it.
   */
  prepare(count: number): void {
    while (this.#pieces.length < count) this.#pieces.push(new Piece());
  }

  of(index: number): Run[] {
    return this.#pieces[index]?.runs ?? [];
  }

  /** Requests colours for new text. They arrive asynchronously. */
  follow(texts: string[], language: string, open: boolean): void {
    if (!isKnownLanguage(language)) return;
    const plain = beyond(texts, LONGEST_LINE);
    if (open) {
      for (const [index, text] of texts.entries())
        if (!plain[index]) void this.#ask(index, text, language);
      return;
    }
    const code = texts.join("");
    if (code === this.#whole || code.length > LONGEST) return;
    this.#whole = code;
    const lengths = texts.map((text) => text.length);
    void this.#run({ code, language, lengths }, (index) =>
      plain[index] ? undefined : this.#pieces[index],
    );
  }

  leave(): void {
    this.#over.abort();
  }

  async #ask(index: number, text: string, language: string): Promise<void> {
    const piece = this.#pieces[index];
    if (!piece) return;
    // A pending piece is submitted again with the next update.
    if (piece.pending || piece.asked === text) return;
    piece.asked = text;
    piece.pending = true;
    await this.#run({ code: text, language, lengths: [text.length] }, () => piece);
    piece.pending = false;
  }

  async #run(job: Job, pieceOf: (index: number) => Piece | undefined): Promise<void> {
    if (this.#over.signal.aborted) return;
    const outcome = await highlighter.run(
      job,
      (index, runs) => {
        const piece = pieceOf(index);
        if (piece) piece.runs = runs;
      },
      this.#over.signal,
    );
    if (outcome !== "done") this.#over.abort();
  }
}

/** Flags the texts that lie entirely within one line, after its first `characters`. */
function beyond(texts: string[], characters: number): boolean[] {
  let line = 0;
  return texts.map((text) => {
    const end = text.lastIndexOf("\n");
    const isBeyond = end < 0 && line > characters;
    line = end < 0 ? line + text.length : text.length - end - 1;
    return isBeyond;
  });
}
