/** Origins of web pages, read from lines of text. */
export type ReadOrigins = { origins: string[]; invalid: string[] };

/** Reads one origin per line, in the form that browsers send. */
export function readOrigins(text: string): ReadOrigins {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const read = lines.map((line) => [line, originOf(line)] as const);
  return {
    origins: [...new Set(read.flatMap(([, origin]) => origin ?? []))],
    invalid: read.flatMap(([line, origin]) => (origin === null ? [line] : [])),
  };
}

/** Origin of a page in an editor, an extension or an app, which has a scheme of its own. */
const OWN_SCHEME = /^([a-z][a-z\d+.-]*:\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?)\/?$/i;

/** Origin that is the whole of an address; null if there is more in it, or less. */
function originOf(line: string): string | null {
  if (!/^https?:\/\//iu.test(line)) return OWN_SCHEME.exec(line)?.[1] ?? null;
  if (!/^https?:\/\/[^/?#@*\s\\]+\/?$/iu.test(line) || !URL.canParse(line)) return null;
  return new URL(line).origin;
}

/** Sentence that names the lines that are no origins; null if there are none. */
export function invalidWords(invalid: string[]): string | null {
  const named = invalid.map((line) => `“${line}”`).join(", ");
  if (invalid.length === 0) return null;
  const are = invalid.length === 1 ? "is not the address of a site" : "are not addresses of sites";
  return `${named} ${are}. Write it like https://example.org, without a path.`;
}
