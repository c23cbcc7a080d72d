import type { AnswerStats } from "../host/host";
import { timeLeft, tokens } from "../text/figures";

/** What is known of an answer that was given. */
type Given = { role: string; thinks: boolean; stats: AnswerStats | null };

/** Fewer tokens say little about the rate. */
const MEASURED = 64;
/** A shorter wait is none. */
const LEAST_SECONDS = 2;

/** What the model reads again: tokens, and the seconds that takes, where it is known how fast this model reads. */
export type Reread = { tokens: number; seconds: number | null };

/**
 * What switching the thinking costs. The mode stands at the beginning of the prompt, so a chat that was answered in the
 * other one is read again. Null where nothing is, or nobody notices it.
 */
export function rereadBy(entries: Given[], thinking: boolean, model: string | null): Reread | null {
  const last = lastAnswer(entries);
  return last && last.thinks !== thinking ? rereadWhole(entries, thinking, model) : null;
}

/** What reading the whole chat again costs, as other instructions have it. */
export function rereadWhole(
  entries: Given[],
  thinking: boolean,
  model: string | null,
): Reread | null {
  const last = lastAnswer(entries);
  if (!last?.stats) return null;
  const { promptTokens, tokens: answered, thinkingTokens } = last.stats;
  // Without thinking mode, what was thought is left out.
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

/** Goes on behind what causes it, such as "With thinking on, ". */
export const rereadWords = (reread: Reread): string =>
  `the model rereads this chat first: ${
    reread.seconds === null ? tokens(reread.tokens) : `about ${timeLeft(reread.seconds)}`
  }.`;
