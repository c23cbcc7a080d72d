/** A search term: a word, or a quoted phrase. */
export type Term = { text: string; quoted: boolean };

/**
 * Chinese, Japanese and Korean characters, each of which is a word, as in the store
 * (`search/words.rs`).
 */
const CHARACTERS =
  "\\u1100-\\u11FF\\u2E80-\\u2FDF\\u3005-\\u3007\\u3021-\\u3029\\u3031-\\u3035\\u3041-\\u3096\\u309D-\\u309F\\u30A1-\\u30FA" +
  "\\u30FC-\\u30FF\\u3105-\\u318E\\u31A0-\\u31BF\\u31F0-\\u31FF\\u3400-\\u4DBF\\u4E00-\\uA4CF\\uA960-\\uA97F\\uAC00-\\uD7FF" +
  "\\uF900-\\uFAFF\\u{1AFF0}-\\u{1B16F}\\u{20000}-\\u{3FFFF}";
/** A letter or digit of a script in which words consist of several. */
const LETTER = `(?![${CHARACTERS}])[\\p{Alphabetic}\\p{N}]`;
const WORDS = new RegExp(`[${CHARACTERS}]|(?:${LETTER})+`, "gu");
const CHARACTER = new RegExp(`[${CHARACTERS}]`, "u");
const SIGN = /[^\s\p{Cc}\p{Alphabetic}\p{N}]/u;

/** Splits a query into words, punctuation and quoted phrases, as the store does. */
export function terms(query: string): Term[] {
  return query.split('"').flatMap((piece, at) => {
    const quoted = at % 2 === 1;
    const texts = quoted ? [piece] : piece.split(/\s+/u);
    return texts
      .filter((text) => /[^\s\p{Cc}]/u.test(fold(text)))
      .map((text) => ({ text: text.trim(), quoted }));
  });
}

/** Accents, and the points of Hebrew and Arabic. */
const DIACRITIC =
  /[\u0300-\u036F\u0483-\u0487\u0591-\u05BD\u05BF\u05C1\u05C2\u05C4\u05C5\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670\u1AB0-\u1AFF\u1DC0-\u1DFF\u20D0-\u20FF\uFE20-\uFE2F]/u;
/** Invisible characters such as soft hyphens and zero-width spaces. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}/u;

/** Cache of folded characters. */
const known = new Map<string, string>();

function foldCharacter(character: string): string {
  let folded = known.get(character);
  if (folded === undefined) {
    // Via upper case, which turns ß into ss and ς into σ.
    folded = [...character.normalize("NFKD").toLowerCase().toUpperCase().toLowerCase()]
      .filter((part) => !DIACRITIC.test(part) && !UNSEEN.test(part))
      .join("")
      .normalize("NFC");
    known.set(character, folded);
  }
  return folded;
}

/** Folds case, accents, width and invisible characters. */
export function fold(text: string): string {
  if (/^[\x00-\x7F]*$/u.test(text)) return text.toLowerCase();
  let folded = "";
  for (const character of text) folded += foldCharacter(character);
  return folded;
}

/** Maps an index in the folded text to the original text. */
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

/**
 * Minimum length of a term that matches within words: the store's index has no shorter substrings.
 */
const SHORTEST_PART = 3;

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`);

/** Pattern that matches the terms in a folded text. */
function pattern(wanted: Term[]): RegExp | null {
  const each = wanted.flatMap(({ text, quoted }) => {
    const folded = fold(text);
    const words = folded.match(WORDS) ?? [];
    const found: string[] = SIGN.test(folded) ? [escaped(folded)] : [];
    const [first] = words;
    if (first === undefined) return found;
    const apart = words.reduce((before, word) => {
      const isJoined = CHARACTER.test(word) || CHARACTER.test(before.at(-1) ?? "");
      return `${before}[^\\p{Alphabetic}\\p{N}]${isJoined ? "*" : "+"}${word}`;
    });
    const isPart = !quoted && words.join("").length >= SHORTEST_PART;
    const mayBeWithin = isPart || CHARACTER.test(first);
    return [...found, mayBeWithin ? apart : `(?<!${LETTER})${apart}`];
  });
  return each.length > 0 ? new RegExp(each.join("|"), "gu") : null;
}

/** Ranges of a text that match a pattern for folded text, as pairs of start and end. */
export function placesOf(text: string, search: RegExp): [from: number, to: number][] {
  const folded = fold(text);
  const origin = origins(text, folded);
  return [...folded.matchAll(search)].map((hit) => [
    origin(hit.index),
    origin(hit.index + hit[0].length),
  ]);
}

/** Ranges of the terms in a text. */
export function places(text: string, wanted: Term[]): [from: number, to: number][] {
  const search = pattern(wanted);
  return search ? placesOf(text, search) : [];
}

/**
 * Pattern that matches a query literally in a folded text, punctuation included. Any white space
 * matches any other.
 */
export function literal(query: string): RegExp | null {
  const words = fold(query).trim();
  if (words === "") return null;
  return new RegExp(escaped(words).replace(/\s+/gu, String.raw`\s+`), "gu");
}

/** Checks if a text contains all terms. */
export function matches(text: string, wanted: Term[]): boolean {
  return wanted.length > 0 && wanted.every((term) => places(text, [term]).length > 0);
}
