import { isKnownLanguage } from "../text/languages";
import type { Job } from "../text/highlighter";
import type { Run } from "../text/runs";
import { highlighter } from "../text/worker";

/** Above this, closed code keeps the colours that its pieces have. */
const LONGEST = 200_000;
/** After this number of characters a line stays plain: it is laid out as one, and every run adds to the cost. */
const LONGEST_LINE = 5_000;

class Piece {
  runs = $state.raw<Run[]>([]);
  /** The text that colours were asked for last, and whether they are still to come. */
  asked = "";
  pending = false;
}

/** The colours of one block of code: piece by piece while it grows, and of the whole once it is closed. */
export class Colours {
  #pieces: Piece[] = [];
  #whole = "";
  /** Nothing more is asked: the block is gone, or its code takes too long to be tried at each update. */
  readonly #over = new AbortController();

  /**
   * Adds pieces until there are `count`. Not in `of`: state that is created while it is read is not
   * tracked by its reader.
   */
  prepare(count: number): void {
    while (this.#pieces.length < count) this.#pieces.push(new Piece());
  }

  of(index: number): Run[] {
    return this.#pieces[index]?.runs ?? [];
  }

  /** Asks for what has no colours yet; they come later. */
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
    // While colours are to come, the next update asks again.
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

/** Which of these texts lie whole in one line, more than `characters` after its beginning. */
function beyond(texts: string[], characters: number): boolean[] {
  let line = 0;
  return texts.map((text) => {
    const end = text.lastIndexOf("\n");
    const isBeyond = end < 0 && line > characters;
    line = end < 0 ? line + text.length : text.length - end - 1;
    return isBeyond;
  });
}
