import type { Failure, Message, ModelView, Stage, ThinkingCut } from "../host";
import { answerParts, appended } from "../parts";
import { stats } from "./library";

const FLUSH_MS = 50;

/** Splits a text into tokens. */
export const words = (part: string): string[] => part.match(/\S{0,15}\s|\S{1,15}/gu) ?? [];

/** Rest of an answer. */
export type Rest = { thinking: string; text: string };

type Delta = Pick<Message, "seq" | "parts"> & {
  tokens: number;
  tokensPerSecond: number;
};

/** Speed and callbacks of an answer in progress. */
type WritingStage = {
  /** Tokens per second. */
  rate: number;
  readingMs: number;
  pauseAt: number;
  model: () => ModelView;
  budget: () => number | null;
  isPaused: () => boolean;
  /** Returns true if the thinking is to end. */
  takesAnswerNow: () => boolean;
  enter: (stage: Stage) => void;
  emit: (delta: Delta) => void;
  /** Runs once the message has its final state. */
  end: () => void;
};

/**
 * Streams `rest` into `message`. Words in the question determine how it ends. Returns the function
 * that stops it.
 */
export function write(
  message: Message,
  rest: Rest,
  question: string,
  stage: WritingStage,
): () => void {
  const thoughts = words(rest.thinking);
  const answer = words(rest.text);
  const breakAt = /\b(fail|crash|limit)\b/.test(question) ? thoughts.length + 12 : Infinity;
  /** True if the answer ends as if it repeated itself. */
  const isLoop = /\bloop\b/.test(question);
  const { rate, readingMs, pauseAt } = stage;
  let begun = Date.now();
  let sent = 0;
  let thoughtUntil = begun;
  let thinkingCut: ThinkingCut | null = null;

  const finish = (state: Message["state"], error: Failure | null = null): void => {
    clearInterval(timer);
    const seconds = (Date.now() - begun - readingMs) / 1000;
    const { status } = stage.model();
    Object.assign(message, {
      state,
      error,
      thinkingMs: thoughts.length ? thoughtUntil - begun - readingMs : message.thinkingMs,
      stats: {
        ...stats,
        ...(status.state === "ready" && { model: status.model.name }),
        tokens: sent,
        thinkingTokens: Math.min(sent, thoughts.length),
        thinkingCut,
        repeated: isLoop,
        firstTokenMs: readingMs,
        tokensPerSecond: sent / Math.max(seconds, 0.05),
      },
    });
    stage.end();
  };

  const step = (): void => {
    const { status } = stage.model();
    if (["loading", "checking", "ejected"].includes(status.state)) {
      begun = Date.now();
      return;
    }
    if (status.state === "ready" && !status.model.canThink) thoughts.length = 0;
    const budget = stage.budget();
    if (budget !== null && sent >= budget && sent < thoughts.length) {
      thinkingCut = "budget";
      thoughts.length = sent;
    }
    if (stage.takesAnswerNow() && sent < thoughts.length) {
      thinkingCut = "answer-now";
      thoughts.length = sent;
    }
    const elapsed = Date.now() - begun;
    if (elapsed < readingMs) {
      const total = 2040;
      stage.enter({
        name: "reading",
        done: Math.round((elapsed / readingMs) * total),
        total,
        cached: 0,
        secondsLeft: Math.round((readingMs - elapsed) / 1000),
      });
      return;
    }
    if (stage.isPaused() && sent === pauseAt) return;
    const due = Math.min(
      Math.max(sent + 1, Math.round(((elapsed - readingMs) / 1000) * rate)),
      thoughts.length + answer.length,
      breakAt,
      stage.isPaused() ? pauseAt : Infinity,
    );
    const thinking = thoughts.slice(sent, due).join("");
    const text = answer
      .slice(Math.max(0, sent - thoughts.length), Math.max(0, due - thoughts.length))
      .join("");
    if (sent < thoughts.length) thoughtUntil = Date.now();
    if (sent === 0) stage.enter({ name: thoughts.length ? "thinking" : "writing" });
    if (sent <= thoughts.length && due > thoughts.length && thoughts.length)
      stage.enter({ name: "writing" });
    sent = due;
    message.seq += 1;
    const parts = answerParts(thinking, text);
    message.parts = appended(message.parts, parts);
    const { seq } = message;
    stage.emit({ seq, parts, tokens: sent, tokensPerSecond: rate });
    if (sent >= breakAt) {
      if (question.includes("fail")) {
        const cause = "The device ran out of memory: 512 MB more are needed.";
        finish("failed", { code: "other", message: cause });
      } else finish(question.includes("limit") ? "limit" : "interrupted");
    } else if (sent >= thoughts.length + answer.length) finish(isLoop ? "limit" : "done");
  };

  const timer = setInterval(step, FLUSH_MS);
  return () => finish("stopped");
}
