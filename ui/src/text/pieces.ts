/**
 * Cuts a growing text into pieces that are final once they are full, so that an update renders only
 * the last one. Pieces end at a line break if one is near.
 */
export class PieceReader {
  #full: string[] = [];
  #done = "";

  constructor(private readonly most: { lines: number; characters: number }) {}

  read(text: string): string[] {
    if (!text.startsWith(this.#done)) {
      this.#full = [];
      this.#done = "";
    }
    let at = this.#done.length;
    for (let end = this.#end(text, at); end > 0; end = this.#end(text, at)) {
      this.#full.push(text.slice(at, end));
      at = end;
    }
    this.#done = text.slice(0, at);
    return at < text.length || at === 0 ? [...this.#full, text.slice(at)] : [...this.#full];
  }

  /** End of the piece that begins at `from`; 0 while it may still grow. */
  #end(text: string, from: number): number {
    const { lines, characters } = this.most;
    const room = text.slice(from, from + characters);
    let end = 0;
    for (let line = 1; line <= lines; line++) {
      const next = room.indexOf("\n", end) + 1;
      if (next === 0) break;
      end = next;
      if (line === lines) return from + end;
    }
    if (text.length <= from + characters) return 0;
    if (end > 0) return from + end;
    const space = room.lastIndexOf(" ") + 1;
    return space > characters / 2 ? from + space : beforePair(text, from + characters);
  }
}

/** Returns `at`, or `at - 1` if that would split a surrogate pair. */
export function beforePair(text: string, at: number): number {
  return /[\uDC00-\uDFFF]/.test(text[at] ?? "") && /[\uD800-\uDBFF]/.test(text[at - 1] ?? "")
    ? at - 1
    : at;
}
