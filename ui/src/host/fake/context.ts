import { textOf, thinkingOf } from "../parts";
import type { ContextUsage, Message, ModelInfo } from "../host";

const CHARACTERS_PER_TOKEN = 4;
const HEADER = 220;

export const tokensOf = (text: string): number => Math.ceil(text.length / CHARACTERS_PER_TOKEN);

/**
 * Start of the next prompt, as indices in the branch: of the first message, and of the first one
 * with its thinking.
 */
type Cut = { messages: number; thinking: number };

const reservedOf = ({ contextLength }: ModelInfo): number =>
  Math.min(1024, Math.floor(contextLength / 4));

/** Tokens of a branch after a cut, for any cut. */
function takenOf(branch: Message[]): (cut: Cut) => { chat: number; thinking: number } {
  /** Prefix sums: tokens before each index. */
  const before = (tokens: (message: Message) => number): ((at: number) => number) => {
    let sum = 0;
    const sums = branch.map((message) => (sum += tokens(message)));
    return (at) => (at > 0 ? (sums[at - 1] ?? sum) : 0);
  };
  const chat = before((message) => tokensOf(textOf(message)));
  const thinking = before((message) => tokensOf(thinkingOf(message)));
  const all = branch.length;
  return (cut) => ({
    chat: chat(all) - chat(cut.messages),
    thinking: thinking(all) - thinking(Math.max(cut.messages, cut.thinking)),
  });
}

/**
 * Truncates a branch to the context: drops earlier thinking, then the oldest turns. After "read
 * again", starts with everything.
 */
function cutOf(branch: Message[], draft: number, model: ModelInfo): Cut {
  const limit = model.contextLength - reservedOf(model);
  const taken = takenOf(branch);
  const size = (cut: Cut): number => {
    const { chat, thinking } = taken(cut);
    return HEADER + chat + thinking + draft;
  };
  const last = branch.findLast((message) => message.role === "assistant");
  const place = (id: number | null | undefined): number =>
    Math.max(
      0,
      branch.findIndex((message) => message.id === id),
    );
  const whole: Cut = { messages: 0, thinking: 0 };
  const before = last?.readFrom?.again
    ? whole
    : { messages: place(last?.readFrom?.message), thinking: place(last?.readFrom?.thinking) };
  let cut = size(whole) > limit ? before : whole;
  if (size(cut) > limit && last) cut = { ...cut, thinking: branch.indexOf(last) };
  if (size(cut) <= limit) return cut;
  const starts = branch.flatMap(({ role }, at) => (role === "user" ? [at] : []));
  if (draft > 0) starts.push(branch.length);
  const fits = (messages: number): boolean =>
    size({ ...cut, messages }) <= model.contextLength * 0.6;
  return { ...cut, messages: starts.find(fits) ?? starts.at(-1) ?? 0 };
}

function omittedBy({ messages, thinking }: Cut, branch: Message[]): Message["omitted"] {
  const between = branch.slice(messages, thinking);
  const thought = between.filter((message) => thinkingOf(message) !== "").length;
  return messages === 0 && thought === 0 ? null : { messages, thinking: thought };
}

/** Omissions of an answer to a branch, as in its message. */
export function leftOut(
  branch: Message[],
  model: ModelInfo,
): Pick<Message, "omitted" | "readFrom"> {
  const cut = cutOf(branch, 0, model);
  const omitted = omittedBy(cut, branch);
  const id = (at: number): number | null => (at === 0 ? null : (branch[at]?.id ?? null));
  const readFrom = { message: id(cut.messages), thinking: id(cut.thinking), again: false };
  return { omitted, readFrom: omitted && readFrom };
}

export function usageOf(
  branch: Message[],
  text: string,
  pasted: number,
  written: number | null,
  model: ModelInfo,
): ContextUsage {
  const message = tokensOf(text.trim());
  const cut = cutOf(branch, message + pasted, model);
  const taken = takenOf(branch);
  const { chat, thinking } = taken(cut);
  const reserved = reservedOf(model);
  const all = HEADER + chat + thinking + message + pasted;
  const whole = taken({ messages: 0, thinking: 0 });
  return {
    context: model.contextLength,
    reserved,
    instructions: HEADER,
    definitions: 0,
    results: 0,
    chat,
    thinking,
    pasted,
    message,
    cached: branch.length > 0 ? all - message - pasted : 0,
    omitted: omittedBy(cut, branch),
    written,
    whole: HEADER + whole.chat + whole.thinking + message + pasted,
    withoutThinking: HEADER + whole.chat + message + pasted,
    messageRoom: model.contextLength - reserved - HEADER,
  };
}

/** Tokens of each definition of a tool. */
const DEFINITION = 90;

/** Tokens of the tools that are on, and of their results in a branch. */
export function ofTools(
  branch: Message[],
  tools: readonly string[],
): Pick<ContextUsage, "definitions" | "results"> {
  const results = branch
    .flatMap(({ parts }) => parts)
    .map((part) => (part.kind === "tool-result" ? tokensOf(part.text) : 0));
  return {
    definitions: DEFINITION * tools.length,
    results: results.reduce((sum, each) => sum + each, 0),
  };
}
