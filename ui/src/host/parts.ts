import type { Part } from "./host";

const joined = (parts: readonly Part[], kind: "text" | "thinking"): string =>
  parts.flatMap((part) => (part.kind === kind ? [part.text] : [])).join("\n\n");

/** Checks for a call of a tool, or its result. */
export const isToolPart = (part: Part): part is Extract<Part, { id: string }> =>
  part.kind === "tool-call" || part.kind === "tool-result";

/** Text of a message; empty if it has none. */
export const textOf = (message: { parts: readonly Part[] } | undefined): string =>
  joined(message?.parts ?? [], "text");

/** Thinking of a message; empty if it has none. */
export const thinkingOf = (message: { parts: readonly Part[] }): string =>
  joined(message.parts, "thinking");

/** Parts of a message with this text. */
export const textParts = (text: string): Part[] => answerParts("", text);

/** Parts of an answer. */
export const answerParts = (thinking: string, text: string): Part[] => [
  ...(thinking === "" ? [] : [{ kind: "thinking" as const, text: thinking }]),
  ...(text === "" ? [] : [{ kind: "text" as const, text }]),
];

/** Parts that have content. Adjacent texts become one, and so does adjacent thinking. */
export function joinedParts(parts: readonly Part[]): Part[] {
  const whole: Part[] = [];
  for (const part of parts) {
    const last = whole.at(-1);
    if (isToolPart(part)) whole.push(part);
    else if (part.text === "") continue;
    else if (last?.kind !== part.kind) whole.push(part);
    else whole.splice(-1, 1, { kind: part.kind, text: `${last.text}\n\n${part.text}` });
  }
  return whole;
}

/** Appends parts. The first one continues the last part, if that is text or thinking like it. */
export function appended(parts: readonly Part[], more: readonly Part[]): Part[] {
  const [last, [first, ...rest]] = [parts.at(-1), more];
  const isOpen = first?.kind === "text" || first?.kind === "thinking";
  if (!last || !isOpen || last.kind !== first.kind) return [...parts, ...more];
  return [...parts.slice(0, -1), { kind: first.kind, text: last.text + first.text }, ...rest];
}

/** Moves the results of tools directly behind their calls. */
export function paired(parts: readonly Part[]): Part[] {
  const isMoved = new Set<Part>();
  const resultOf = (id: string, at: number): Part | undefined =>
    parts.find(
      (part, place) =>
        place > at && part.kind === "tool-result" && part.id === id && !isMoved.has(part),
    );
  return parts.flatMap((part, at) => {
    if (isMoved.has(part)) return [];
    const result = part.kind === "tool-call" ? resultOf(part.id, at) : undefined;
    if (!result) return [part];
    isMoved.add(result);
    return [part, result];
  });
}
