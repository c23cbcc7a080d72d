/** A last line that is not yet what it will be: a list mark, a heading mark, a fence, a table's edge. */
const UNDECIDED = /^\s*(?:\d{1,9}[.)]?|[-*+>_=~]+|#{1,6}|`{1,3}|\|.*)?$/u;
const DELIMITER_ROW = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/u;

/**
 * The end of a growing text as it will probably read: marks that still mean nothing are held back,
 * and emphasis, code and links that have begun are closed. So nothing flickers while it is written.
 */
export function mend(text: string): string {
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  if (endsInFence(lines)) return text;
  lines.push(last);
  if (UNDECIDED.test(last)) {
    lines[lines.length - 1] = "";
    return holdBackTable(lines).join("\n");
  }
  lines[lines.length - 1] = closeInline(last);
  return lines.join("\n");
}

function endsInFence(lines: string[]): boolean {
  let fence = "";
  for (const line of lines) {
    const mark = /^\s*(`{3,}|~{3,})/u.exec(line)?.[1];
    if (mark === undefined) continue;
    if (fence === "") fence = mark;
    else if (mark.startsWith(fence) && line.trim() === mark) fence = "";
  }
  return fence !== "";
}

/** A table's first row reads as text until the row below it says that it is a table. */
function holdBackTable(lines: string[]): string[] {
  const from =
    lines.findLastIndex((line, at) => at < lines.length - 1 && !line.startsWith("|")) + 1;
  const rows = lines.slice(from, -1);
  const below = rows[1] ?? "";
  const isTable = rows.length === 0 || (below.length < 1000 && DELIMITER_ROW.test(below));
  return isTable ? lines : [...lines.slice(0, from), ""];
}

/** A link whose address is still coming shows its text. */
function closeLink(line: string): string {
  const ended = Math.max(line.lastIndexOf(")"), line.search(/\s\S*$/u));
  let at = line.indexOf("](", ended + 1);
  while (at >= 0) {
    const open = line.indexOf("[", line.lastIndexOf("]", at - 1) + 1);
    if (open < 0) return line;
    if (open < at) {
      const from = line[open - 1] === "!" ? open - 1 : open;
      return line.slice(0, from) + line.slice(open + 1, at);
    }
    at = line.indexOf("](", open);
  }
  return line;
}

function closeInline(line: string): string {
  let mended = closeLink(line).replace(/(?:\*{1,2}|`)$/u, (mark, at: number) =>
    isOpening(line, mark, at) ? "" : mark,
  );
  if (count(mended, /`/gu) % 2 === 1) return `${mended}\``;
  if (count(mended, /\*\*/gu) % 2 === 1) mended = `${mended.trimEnd()}**`;
  return mended;
}

/** A mark at the very end opens nothing yet when all of its kind before it are paired. */
function isOpening(line: string, mark: string, at: number): boolean {
  return count(line.slice(0, at), mark === "`" ? /`/gu : /\*\*/gu) % 2 === 0;
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;
