import type { Effects, ToolView } from "../state/types";
import { harmlessName } from "../text/tool-texts";

/** Each effect: in a sentence about the tool, and in a list. */
const EFFECTS: [effect: keyof Effects, sentence: string, brief: string][] = [
  ["readsChats", "reads your chats", "Reads your chats"],
  ["readsFiles", "reads files", "Reads files"],
  ["changes", "may change things", "May change things"],
  ["network", "may use the network", "May use the network"],
];

/** Sentence on what a tool may do. */
export function effectsSentence(effects: Effects): string {
  const words = EFFECTS.flatMap(([effect, sentence]) => (effects[effect] ? [sentence] : []));
  const last = words.pop();
  if (last === undefined) return "It only computes.";
  return `It ${words.length > 0 ? `${words.join(", ")} and ` : ""}${last}.`;
}

/** Effects of a tool in few words. */
export function effectsBrief(effects: Effects): string {
  const words = EFFECTS.flatMap(([effect, , brief]) => (effects[effect] ? [brief] : []));
  const [first = "Only computes", ...others] = words;
  return [first, ...others.map((each) => each.toLowerCase())].join(", ");
}

/** Name of a tool's source. */
export const sourceWords = ({ source }: Pick<ToolView, "source">): string =>
  source.kind === "server" ? harmlessName(source.name) : "Built in";
