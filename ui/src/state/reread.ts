import type { AnswerStats } from "../host/host";
import { timeLeft, tokens } from "../text/figures";

/** Known facts of an answer. */
type Given = { role: string; thinks: boolean; stats: AnswerStats | null };

/** Minimum of tokens for a reliable rate. */
const MEASURED = 64;
/** Threshold below which a delay goes unnoticed, in seconds. */
const LEAST_SECONDS = 2;

/**
 * Tokens that the model must reread, and the seconds that this takes, if its reading rate is known.
 */
export type Reread = { tokens: number; seconds: number | null };

/**
 * Cost of a switch of the thinking mode. The mode is at the start of the prompt, so a chat that was
 * answered in the other mode is reread. Null if nothing is, or the delay is negligible.
 */
export function rereadBy(entries: Given[], thinking: boolean, model: string | null): Reread | null {
  const last = lastAnswer(entries);
  return last && last.thinks !== thinking ? rereadWhole(entries, thinking, model) : null;
}

/** Cost of rereading the whole chat, for example after a change of instructions. */
export function rereadWhole(
  entries: Given[],
  thinking: boolean,
  model: string | null,
): Reread | null {
  const last = lastAnswer(entries);
  if (!last?.stats) return null;
  const { promptTokens, tokens: answered, thinkingTokens } = last.stats;
  // Without thinking mode, earlier thinking is left out.
  const total = promptTokens + answered - (thinking ? 0 : thinkingTokens);
  const measured = entries.findLast(
    ({ stats }) =>
      stats !== null &&
      stats.model === model &&
      stats.readPerSecond > 0 &&
      stats.promptTokens - stats.cachedTokens >= MEASURED,
  );
  const rate = measured?.stats?.readPerSecond;
  if (rate === undefined) return { tokens: total, seconds: null };
  const seconds = total / rate;
  return seconds < LEAST_SECONDS ? null : { tokens: total, seconds };
}

const lastAnswer = (entries: Given[]): Given | undefined =>
  entries.findLast(({ role, stats }) => role === "assistant" && stats !== null);

/** Sentence that follows its cause, such as "With thinking on, ". */
export const rereadWords = (reread: Reread): string =>
  `the model rereads this chat first: ${
    reread.seconds === null ? tokens(reread.tokens) : `about ${timeLeft(reread.seconds)}`
  }.`;
