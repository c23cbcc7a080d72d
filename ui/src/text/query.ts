/** A word of a search, or several in quotes that stand together. */
export type Term = { text: string; quoted: boolean };

/** The terms of a query as the store reads it: words, and what stands in quotes. */
export function terms(query: string): Term[] {
  return query.split('"').flatMap((piece, at) => {
    const quoted = at % 2 === 1;
    const texts = quoted ? [piece] : piece.split(/\s+/u);
    return texts
      .filter((text) => /[\p{L}\p{N}]/u.test(text))
      .map((text) => ({ text: text.trim(), quoted }));
  });
}

const MARK = /\p{M}/u;

/** A text in lower case and without accents, and where each of its units came from. */
function fold(text: string): { folded: string; origin: (at: number) => number } {
  if (/^[\x00-\x7F]*$/u.test(text)) return { folded: text.toLowerCase(), origin: (at) => at };
  let folded = "";
  const origins: number[] = [];
  let from = 0;
  for (const character of text) {
    for (const part of character.normalize("NFD").toLowerCase()) {
      if (MARK.test(part)) continue;
      folded += part;
      for (let unit = 0; unit < part.length; unit++) origins.push(from);
    }
    from += character.length;
  }
  return { folded, origin: (at) => origins[at] ?? text.length };
}

/** The index that knows of parts of words knows of no shorter ones. */
const SHORTEST_PART = 3;

/** What finds the terms in a folded text. */
function pattern(wanted: Term[]): RegExp | null {
  const each = wanted.flatMap(({ text, quoted }) => {
    const words = fold(text).folded.match(/[\p{L}\p{N}]+/gu);
    if (!words) return [];
    const apart = words.join("[^\\p{L}\\p{N}]+");
    const isPart = !quoted && text.length >= SHORTEST_PART;
    return isPart ? [apart] : [`(?<![\\p{L}\\p{N}])${apart}`];
  });
  return each.length > 0 ? new RegExp(each.join("|"), "gu") : null;
}

/** Where the terms stand in a text, as pairs of beginning and end. */
export function places(text: string, wanted: Term[]): [from: number, to: number][] {
  const search = pattern(wanted);
  if (!search) return [];
  const { folded, origin } = fold(text);
  return [...folded.matchAll(search)].map((hit) => [
    origin(hit.index),
    origin(hit.index + hit[0].length),
  ]);
}

/** Whether a text has all terms. */
export function matches(text: string, wanted: Term[]): boolean {
  return wanted.length > 0 && wanted.every((term) => places(text, [term]).length > 0);
}
