/** Length, in characters, above which JSON is shown as it was written. */
const LONGEST = 200_000;
/** Length up to which an object or a list stays on one line. */
const LINE = 84;
/** Digits up to which a number is read without loss. */
const DIGITS = 15;

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

/** A value of JSON that fits in a cell. */
type Flat = string | number | boolean | null;

/** A table: the names of its columns, and its rows. */
export type JsonTable = { columns: string[]; rows: string[][]; numeric: boolean[] };

/** Value of a text that is JSON; undefined for other texts. */
export function parsed(text: string): Json | undefined {
  if (text.length > LONGEST) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isFlat = (value: Json | undefined): value is Flat =>
  value !== undefined && (value === null || typeof value !== "object");

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/gu;

/**
 * Indents JSON, and leaves its strings and numbers as they were written: a large number would be
 * rounded otherwise.
 */
export function indented(json: string): string {
  const tokens = json.match(TOKEN) ?? [];
  const line = (from: number, to: number): string =>
    tokens
      .slice(from, to)
      .map((token) => (token === "," || token === ":" ? `${token} ` : token))
      .join("");
  const ends = endsOf(tokens);
  let out = "";
  let depth = 0;
  const feed = (): string => `\n${"  ".repeat(depth)}`;
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at] ?? "";
    const end = ends.get(at);
    if (end !== undefined) {
      const short = end - at < LINE ? line(at, end + 1) : "";
      if (end === at + 1 || (short !== "" && short.length <= LINE)) {
        out += short;
        at = end;
        continue;
      }
      depth += 1;
      out += token + feed();
    } else if (token === "}" || token === "]") {
      depth -= 1;
      out += feed() + token;
    } else if (token === ",") out += token + feed();
    else out += token === ":" ? ": " : token;
  }
  return out;
}

/** Index of the end of each object and list, by the index of its start. */
function endsOf(tokens: string[]): Map<number, number> {
  const ends = new Map<number, number>();
  const open: number[] = [];
  for (const [at, token] of tokens.entries()) {
    if (token === "{" || token === "[") open.push(at);
    if (token === "}" || token === "]") ends.set(open.pop() ?? 0, at);
  }
  return ends;
}

/** Values of an object in one line, or null if they are not simple. */
export function oneLine(value: JsonObject): string | null {
  const entries = Object.entries(value);
  if (!entries.every(([, each]) => isFlat(each))) return null;
  const [only] = entries;
  if (entries.length === 1 && only) return inLine(only[1] as Flat);
  return entries.map(([key, each]) => `${key}: ${inLine(each as Flat)}`).join(", ");
}

const inLine = (value: Flat): string => String(value).replaceAll(/\s+/gu, " ").trim();

/** Table of a list of flat objects; null for other values, and if a number would be rounded. */
export function tableOf(text: string, value: Json | undefined): JsonTable | null {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isObject)) return null;
  const columns = [...new Set(value.flatMap((row) => Object.keys(row)))];
  const isTable =
    columns.length > 0 &&
    columns.length <= 12 &&
    value.every((row) => Object.values(row).every(isFlat)) &&
    areExact(text);
  if (!isTable) return null;
  const cell = (row: JsonObject, column: string): string => {
    const each = row[column];
    return each === undefined || each === null ? "" : String(each);
  };
  return {
    columns,
    rows: value.map((row) => columns.map((column) => cell(row, column))),
    numeric: columns.map((column) => value.every((row) => typeof row[column] === "number")),
  };
}

/** Checks that no number has more digits than the page can hold. */
const areExact = (text: string): boolean =>
  (text.match(TOKEN) ?? []).every(
    (token) => token.startsWith('"') || token.replaceAll(/\D/gu, "").length <= DIGITS,
  );
