import type {
  AnswerStats,
  CallView,
  Failure,
  LengthWish,
  Message,
  MessageState,
  Omitted,
  Part,
  ReadFrom,
  Role,
  Stage,
} from "../host/host";
import { appended, isToolPart, joinedParts, paired, textOf, thinkingOf } from "../host/parts";
import { remedy } from "./failures";

type Delta = {
  seq: number;
  parts: Part[];
  tokens: number;
  tokensPerSecond: number;
};

/**
 * Collapsible sections of a message: its parts, by their index in `shownParts`, and the figures of
 * an answer.
 */
export type Fold = number | "figures";

/** A message as the window shows it. An answer grows in place while it is being written. */
export class Entry {
  readonly id: number;
  readonly role: Role;
  /** Name of the message in menus and labels. */
  readonly noun: "answer" | "message";
  readonly createdAt: number;
  readonly thinks: boolean;
  /** Requested length of the answer. */
  readonly length: LengthWish | null;
  /** Topic of the guide that the text comes from; null if a model wrote it. */
  guide = $state<string | null>(null);
  parts = $state.raw<Part[]>([]);
  readonly text = $derived(textOf(this));
  readonly thinking = $derived(thinkingOf(this));
  /** Time of all thinking; null during thinking. */
  thinkingMs = $state<number | null>(null);
  state = $state<MessageState>("done");
  stats = $state.raw<AnswerStats | null>(null);
  error = $state.raw<Failure | null>(null);
  /** Messages left out of the prompt because the context was full. */
  omitted = $state.raw<Omitted | null>(null);
  /** Start of the model's input for this answer. */
  readFrom = $state.raw<ReadFrom | null>(null);
  siblings = $state.raw<number[]>([]);
  stage = $state.raw<Stage>({ name: "waiting" });
  /** Calls that wait or run. */
  calls = $state.raw<CallView[]>([]);
  /** Start of the calls that run, in milliseconds since the epoch, by their ids. */
  #callsSince = new Map<string, number>();
  /** Tokens of the prompt, once it is read. */
  promptTokens = $state<number | null>(null);
  /** Tokens so far and per second, while writing. */
  pace = $state.raw<{ tokens: number; perSecond: number } | null>(null);
  /**
   * Start of thinking, in milliseconds since the epoch, as if there had been no pause in it; null
   * except during thinking.
   */
  thinkingSince = $state<number | null>(null);
  /** Expanded sections. Kept here because messages far from the viewport are not rendered. */
  #unfolded = $state.raw<readonly (string | Fold)[]>([]);
  #seq = 0;
  readonly #remedy = $derived.by(() => this.error && remedy(this.error.code));

  constructor(message: Message) {
    this.id = message.id;
    this.role = message.role;
    this.noun = message.role === "assistant" ? "answer" : "message";
    this.createdAt = message.createdAt;
    this.thinks = message.thinks;
    this.length = message.length;
    this.absorb(message);
  }

  readonly writing = $derived(this.state === "writing");
  /** True if "Continue" can extend the answer. */
  readonly canGoOn = $derived.by(
    () =>
      this.noun === "answer" &&
      this.guide === null &&
      !this.isTooLong &&
      this.#remedy !== "more-context",
  );
  /** True if the question exceeds the model's context. */
  readonly isTooLong = $derived.by(() => this.#remedy === "shorten");
  readonly pondering = $derived(this.writing && this.stage.name === "thinking");
  /** Call that waits for consent. */
  readonly asking = $derived.by(() => this.calls.find(({ status }) => status === "asks") ?? null);
  /** True while a call waits or runs, which its card shows. */
  readonly isCalling = $derived.by(() => this.writing && this.calls.length > 0);
  /**
   * Parts as they are shown, in their order, with each result behind its call. Thinking is shown
   * before its first word.
   */
  readonly shownParts = $derived.by((): Part[] => {
    const parts = paired(joinedParts(this.parts));
    const begins = this.pondering && parts.at(-1)?.kind !== "thinking";
    return begins ? [...parts, { kind: "thinking", text: "" }] : parts;
  });
  /** Number of this version among its siblings, from 1. */
  readonly place = $derived.by(() => this.siblings.indexOf(this.id) + 1);

  /** Key of a fold. Later results change the indices of calls, so these have keys of their own. */
  #keyOf(fold: Fold): string | Fold {
    const part = fold === "figures" ? undefined : this.shownParts[fold];
    return part && isToolPart(part) ? `${part.kind} ${part.id}` : fold;
  }

  isUnfolded(fold: Fold): boolean {
    return this.#unfolded.includes(this.#keyOf(fold));
  }

  unfold(fold: Fold): void {
    if (!this.isUnfolded(fold)) this.turnFold(fold);
  }

  turnFold(fold: Fold): void {
    const key = this.#keyOf(fold);
    this.#unfolded = this.isUnfolded(fold)
      ? this.#unfolded.filter((each) => each !== key)
      : [...this.#unfolded, key];
  }

  /** Start of a call that runs, in milliseconds since the epoch. */
  callSince(id: string): number | null {
    return this.#callsSince.get(id) ?? null;
  }

  /** Copies the host's state of this message. */
  absorb(message: Message): void {
    this.guide = message.guide;
    this.parts = message.parts;
    this.thinkingMs = message.thinkingMs;
    this.state = message.state;
    this.stats = message.stats;
    this.error = message.error;
    this.omitted = message.omitted;
    this.readFrom = message.readFrom;
    this.siblings = message.siblings;
    this.#seq = message.seq;
    const running = message.calls.filter(({ status }) => status === "runs");
    this.#callsSince = new Map(running.map(({ id }) => [id, this.callSince(id) ?? Date.now()]));
    this.calls = message.calls;
    this.thinkingSince = null;
    if (message.state !== "writing") return;
    const last = joinedParts(message.parts).at(-1)?.kind;
    if (last === "text") this.enter({ name: "writing" });
    else this.enter({ name: last === "thinking" ? "thinking" : "waiting" });
  }

  enter(stage: Stage): void {
    this.stage = stage;
    if (stage.name === "reading") this.promptTokens = stage.total;
    if (stage.name === "thinking") {
      // The clock continues from the time so far.
      this.thinkingSince ??= Date.now() - (this.thinkingMs ?? 0);
      this.thinkingMs = null;
    } else if (this.thinkingSince !== null) {
      this.thinkingMs = Date.now() - this.thinkingSince;
      this.thinkingSince = null;
    }
  }

  /** Appends a delta, idempotently. Returns false if an earlier one is missing. */
  append(delta: Delta): boolean {
    if (delta.seq <= this.#seq) return true;
    if (delta.seq !== this.#seq + 1) return false;
    this.#seq = delta.seq;
    this.parts = appended(this.parts, delta.parts);
    for (const part of delta.parts) {
      if (part.kind === "thinking") this.enter({ name: "thinking" });
      if (part.kind === "text") this.enter({ name: "writing" });
      if (isToolPart(part)) this.enter({ name: "waiting" });
    }
    this.pace = { tokens: delta.tokens, perSecond: delta.tokensPerSecond };
    return true;
  }
}
