/** A part of a question: text, code, or the hidden delimiters around code. */
export type QuestionPart = { kind: "words" | "code" | "block" | "mark"; text: string };

const FENCE = /^ {0,3}(`{3,}|~{3,})[^\n]*\n?$/u;
const INLINE = /(?<!`)(`+)(?!`)([^\n]*?[^`\n])\1(?!`)/gu;

/**
 * Splits the pieces of a question into parts, by the backticks and fences around code. Everything
 * else stays verbatim, because a question is not Markdown. The parts of a piece add up to its text.
 */
export function questionParts(pieces: readonly string[]): QuestionPart[][] {
  let fence = "";
  return pieces.map((piece) => {
    const parts: QuestionPart[] = [];
    let words = "";
    const add = (kind: QuestionPart["kind"], text: string) => {
      const last = parts.at(-1);
      if (last?.kind === kind && kind !== "mark") last.text += text;
      else if (text !== "") parts.push({ kind, text });
    };
    const flush = () => {
      for (const part of inlineParts(words)) add(part.kind, part.text);
      words = "";
    };
    for (const line of piece.match(/[^\n]*\n|[^\n]+$/gu) ?? []) {
      const mark = FENCE.exec(line)?.[1] ?? "";
      if (fence === "" && mark !== "") {
        flush();
        add("mark", line);
        fence = mark;
      } else if (fence !== "" && mark.startsWith(fence) && line.trim() === mark) {
        add("mark", line);
        fence = "";
      } else if (fence !== "") add("block", line);
      else words += line;
    }
    flush();
    return parts;
  });
}

function* inlineParts(text: string): Generator<QuestionPart> {
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, marks = "", code = ""] = match;
    yield { kind: "words", text: text.slice(at, match.index) };
    yield { kind: "mark", text: marks };
    yield { kind: "code", text: code };
    yield { kind: "mark", text: marks };
    at = match.index + whole.length;
  }
  yield { kind: "words", text: text.slice(at) };
}
