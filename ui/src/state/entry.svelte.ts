import type { Message, MessageState, Omitted, Role, Stage, Stats, WireError } from "../host/host";

type Delta = {
  seq: number;
  thinking: string;
  text: string;
  tokens: number;
  tokensPerSecond: number;
};

/** What of a message can be unfolded: its thinking, the figures of an answer, a long question. */
export type Fold = "thinking" | "figures" | "whole";

/** One message as the window shows it; an answer grows in place while it is being written. */
export class Entry {
  readonly id: number;
  readonly role: Role;
  readonly createdAt: number;
  readonly thinks: boolean;
  text = $state("");
  thinking = $state("");
  thinkingMs = $state<number | null>(null);
  state = $state<MessageState>("done");
  stats = $state.raw<Stats | null>(null);
  error = $state.raw<WireError | null>(null);
  /** What the model was not given, for want of context. */
  omitted = $state.raw<Omitted | null>(null);
  siblings = $state.raw<number[]>([]);
  stage = $state<Stage>("waiting");
  /** Prompt tokens read, and how many there are to read. */
  reading = $state.raw<{ done: number; total: number }>({ done: 0, total: 0 });
  /** Tokens so far and their rate, while writing. */
  pace = $state.raw<{ tokens: number; perSecond: number } | null>(null);
  /** When thinking began, in milliseconds since the epoch; null before. */
  thinkingSince = $state<number | null>(null);
  /** What the person has unfolded. It is kept here, as what is far from the view is not drawn. */
  #unfolded = $state.raw<readonly Fold[]>([]);
  #seq = 0;

  constructor(message: Message) {
    this.id = message.id;
    this.role = message.role;
    this.createdAt = message.createdAt;
    this.thinks = message.thinks;
    this.absorb(message);
  }

  readonly writing = $derived(this.state === "writing");
  /** Continue can add to it. */
  readonly canGoOn = $derived(
    this.error?.code !== "answer-full" && this.error?.code !== "too-long",
  );
  readonly pondering = $derived(this.writing && this.stage === "thinking");
  /** This version's place among its siblings, from 1. */
  readonly place = $derived.by(() => this.siblings.indexOf(this.id) + 1);

  isUnfolded(fold: Fold): boolean {
    return this.#unfolded.includes(fold);
  }

  unfold(fold: Fold): void {
    if (!this.isUnfolded(fold)) this.turnFold(fold);
  }

  turnFold(fold: Fold): void {
    this.#unfolded = this.isUnfolded(fold)
      ? this.#unfolded.filter((each) => each !== fold)
      : [...this.#unfolded, fold];
  }

  /** Takes over what the host knows of this message. */
  absorb(message: Message): void {
    this.text = message.text;
    this.thinking = message.thinking ?? "";
    this.thinkingMs = message.thinkingMs;
    this.state = message.state;
    this.stats = message.stats;
    this.error = message.error;
    this.omitted = message.omitted;
    this.siblings = message.siblings;
    this.#seq = message.seq;
    this.thinkingSince = null;
    if (message.state !== "writing") return;
    if (this.text !== "") this.stage = "writing";
    else if (this.thinking !== "") {
      // The time so far goes on from here.
      this.thinkingSince = Date.now() - (message.thinkingMs ?? 0);
      this.thinkingMs = null;
      this.stage = "thinking";
    } else this.stage = "waiting";
  }

  enter(stage: Stage, done = 0, total = 0): void {
    this.stage = stage;
    if (stage === "reading") this.reading = { done, total };
    if (stage === "thinking") this.thinkingSince ??= Date.now();
    if (stage === "writing" && this.thinkingSince !== null) {
      this.thinkingMs ??= Date.now() - this.thinkingSince;
    }
  }

  /** Appends a delta; false when one before it is missing. A delta that is already here changes nothing. */
  append(delta: Delta): boolean {
    if (delta.seq <= this.#seq) return true;
    if (delta.seq !== this.#seq + 1) return false;
    this.#seq = delta.seq;
    if (delta.thinking !== "") {
      this.thinking += delta.thinking;
      this.enter("thinking");
    }
    if (delta.text !== "") {
      this.text += delta.text;
      this.enter("writing");
    }
    this.pace = { tokens: delta.tokens, perSecond: delta.tokensPerSecond };
    return true;
  }
}
