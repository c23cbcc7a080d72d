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

/** What a character is without accents and in lower case, for those that were met. */
const known = new Map<string, string>();

function foldCharacter(character: string): string {
  let folded = known.get(character);
  if (folded === undefined) {
    folded = [...character.normalize("NFD").toLowerCase()]
      .filter((part) => !MARK.test(part))
      .join("");
    known.set(character, folded);
  }
  return folded;
}

/** A text in lower case and without accents. */
export function fold(text: string): string {
  if (/^[\x00-\x7F]*$/u.test(text)) return text.toLowerCase();
  let folded = "";
  for (const character of text) folded += foldCharacter(character);
  return folded;
}

/** Where each unit of a folded text came from. */
function origins(text: string, folded: string): (at: number) => number {
  if (text.length === folded.length && /^[\x00-\x7F]*$/u.test(text)) return (at) => at;
  const found = new Uint32Array(folded.length);
  let from = 0;
  let to = 0;
  for (const character of text) {
    const { length } = foldCharacter(character);
    found.fill(from, to, to + length);
    to += length;
    from += character.length;
  }
  return (at) => found[at] ?? text.length;
}

/** The index that knows of parts of words knows of no shorter ones. */
const SHORTEST_PART = 3;

/** What finds the terms in a folded text. */
function pattern(wanted: Term[]): RegExp | null {
  const each = wanted.flatMap(({ text, quoted }) => {
    const words = fold(text).match(/[\p{L}\p{N}]+/gu);
    if (!words) return [];
    const apart = words.join("[^\\p{L}\\p{N}]+");
    const isPart = !quoted && text.length >= SHORTEST_PART;
    return isPart ? [apart] : [`(?<![\\p{L}\\p{N}])${apart}`];
  });
  return each.length > 0 ? new RegExp(each.join("|"), "gu") : null;
}

/** Where a pattern for folded text matches a text, as pairs of beginning and end. */
export function placesOf(text: string, search: RegExp): [from: number, to: number][] {
  const folded = fold(text);
  const origin = origins(text, folded);
  return [...folded.matchAll(search)].map((hit) => [
    origin(hit.index),
    origin(hit.index + hit[0].length),
  ]);
}

/** Where the terms stand in a text. */
export function places(text: string, wanted: Term[]): [from: number, to: number][] {
  const search = pattern(wanted);
  return search ? placesOf(text, search) : [];
}

/** What finds a query in a folded text character by character, its signs too; white space is as good as any other. */
export function literal(query: string): RegExp | null {
  const words = fold(query).trim();
  if (words === "") return null;
  const escaped = words.replace(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`);
  return new RegExp(escaped.replace(/\s+/gu, String.raw`\s+`), "gu");
}

/** Whether a text has all terms. */
export function matches(text: string, wanted: Term[]): boolean {
  return wanted.length > 0 && wanted.every((term) => places(text, [term]).length > 0);
}
