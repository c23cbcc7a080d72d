import type { ContextUsage, Host } from "../host/host";
import { count, tokens } from "../text/figures";
import type { Conversation } from "./conversation.svelte";
import type { Model } from "./model.svelte";

/** Debounce delay of the count. */
const COUNT_AFTER_MS = 150;
/** Limit of chats whose last counts are cached. */
const KEPT = 50;
/** Limit of long texts whose counts are cached: each may have megabytes. */
const KEPT_TEXTS = 10;
/** Share of the longest prompt at which the window shows a warning. */
const NEARLY_FULL = 0.8;

/** A segment of the context gauge. */
export type ContextPart = {
  key:
    | "instructions"
    | "definitions"
    | "chat"
    | "results"
    | "thinking"
    | "pasted"
    | "message"
    | "answer"
    | "free";
  label: string;
  tokens: number;
};

/** Notice above the composer. */
export type ContextNotice =
  | { kind: "too-long"; needed: number; room: number }
  | { kind: "leaves-out"; messages: number }
  | { kind: "nearly-full"; percent: number };

/** Input of the next prompt. */
export type CountRequest = {
  chat: number | null;
  text: string;
  pastes: string[];
  thinking: boolean;
};

/**
 * Use of the model's context: counted by the host, and extrapolated while an answer is being
 * written.
 */
export class Context {
  /** Last counts by chat, which are shown even if no model can count. */
  #known = $state.raw<ReadonlyMap<number | null, ContextUsage>>(new Map());
  /** Tokens by pasted text. */
  #texts = $state.raw<ReadonlyMap<string, number>>(new Map());
  /** Dismissed notices by chat. */
  #dismissed = $state.raw<ReadonlyMap<number | null, ContextNotice["kind"]>>(new Map());
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Input of the debounced count. */
  #pending: CountRequest | null = null;
  #asked = 0;

  constructor(
    private readonly host: Host,
    private readonly conversation: Conversation,
    private readonly model: Model,
  ) {}

  readonly usage = $derived.by(() => this.#known.get(this.conversation.chat) ?? null);
  /** Tokens written since the last count. */
  readonly #grown = $derived.by(() => {
    const { last } = this.conversation;
    if (!this.usage || !last?.writing || !last.pace) return 0;
    return Math.max(0, last.pace.tokens - (this.usage.written ?? 0));
  });
  /** Tokens of the chat without the next message. */
  readonly #ofChat = $derived.by(() => {
    const { usage } = this;
    if (!usage) return 0;
    const { instructions, definitions, chat, results, thinking } = usage;
    return instructions + definitions + chat + results + thinking + this.#grown;
  });
  readonly used = $derived.by(() =>
    this.usage ? this.#ofChat + this.usage.pasted + this.usage.message : 0,
  );
  /** Longest prompt, in tokens. */
  readonly room = $derived.by(() => (this.usage ? this.usage.context - this.usage.reserved : 0));
  readonly share = $derived.by(() =>
    this.usage ? Math.min(this.used / this.usage.context, 1) : 0,
  );
  /** True if messages will soon be left out. */
  readonly nearlyFull = $derived.by(() => this.used >= NEARLY_FULL * this.room && this.used > 0);
  /** Tokens of the next prompt that are already in the KV cache. */
  readonly cached = $derived.by(() =>
    this.usage ? Math.min(this.usage.cached + this.#grown, this.used) : 0,
  );

  readonly parts = $derived.by((): ContextPart[] => {
    const { usage } = this;
    if (!usage) return [];
    const thinks = this.conversation.last?.pondering ?? false;
    const left = Math.max(0, usage.context - this.used);
    const answer = Math.min(left, Math.max(0, usage.reserved - this.#grown));
    const part = (key: ContextPart["key"], label: string, tokens: number): ContextPart => ({
      key,
      label,
      tokens,
    });
    return [
      part("instructions", "Instructions", usage.instructions),
      part("definitions", "Tools", usage.definitions),
      part("chat", "Chat", usage.chat + (thinks ? 0 : this.#grown)),
      part("results", "Results of tools", usage.results),
      part("thinking", "Thinking", usage.thinking + (thinks ? this.#grown : 0)),
      part("pasted", "Pasted texts", usage.pasted),
      part("message", "This message", usage.message),
      part("answer", "Kept for the answer", answer),
      part("free", "Free", left - answer),
    ];
  });

  /** Notice to show before the next message, unless it was dismissed. */
  readonly notice = $derived.by((): ContextNotice | null => {
    const notice = this.#due;
    if (notice === null || notice.kind === "too-long") return notice;
    const dismissed = this.#dismissed.get(this.conversation.chat);
    const again = dismissed === "nearly-full" && notice.kind === "leaves-out";
    return dismissed === undefined || again ? notice : null;
  });
  readonly #due = $derived.by((): ContextNotice | null => {
    const { usage } = this;
    const { entries, writing } = this.conversation;
    if (!usage) return null;
    const needed = usage.message + usage.pasted;
    if (needed > usage.messageRoom) return { kind: "too-long", needed, room: usage.messageRoom };
    if (writing || entries.length < 2) return null;
    const messages = usage.omitted?.messages ?? 0;
    if (messages > this.#leftOut) return { kind: "leaves-out", messages };
    const share = this.#ofChat / this.room;
    if (share < NEARLY_FULL) return null;
    return { kind: "nearly-full", percent: Math.min(100, Math.round(share * 100)) };
  });
  /** Number of messages that were left out of the last prompt. */
  readonly #leftOut = $derived.by(() => this.conversation.lastAnswer?.omitted?.messages ?? 0);

  readonly tooLong = $derived.by(() => this.#due?.kind === "too-long");

  /** Counts the next message, and returns true if it is too long for the model. */
  async refuses(): Promise<boolean> {
    await this.#countPending();
    return this.tooLong;
  }

  /** Dismisses the notice until a more severe one is due. */
  dismiss(): void {
    const { notice } = this;
    if (notice) this.#setDismissed(notice.kind);
  }

  /** Tokens of a text, or null if it is not counted yet. */
  tokensOf(text: string): number | null {
    return this.#texts.get(text) ?? null;
  }

  /** Counts the tokens of long texts. */
  async measure(texts: string[]): Promise<void> {
    const uncounted = texts.filter((text) => !this.#texts.has(text));
    if (uncounted.length === 0) return;
    const counts = await this.host.countTokens(uncounted).catch(() => null);
    if (!counts) return;
    const counted = uncounted.map((text, at) => [text, counts[at] ?? 0] as const);
    this.#texts = new Map([...[...this.#texts].slice(-KEPT_TEXTS), ...counted]);
  }

  /** Counts the next prompt, debounced. */
  count(what: CountRequest): void {
    clearTimeout(this.#timer);
    this.#pending = what;
    this.#timer = setTimeout(() => void this.#countPending(), COUNT_AFTER_MS);
  }

  /** Reason why the whole chat cannot be reread, or null if it can. */
  async refusal(): Promise<string | null> {
    await this.#countPending();
    const { usage } = this;
    if (!usage) return "No model is loaded that could read it.";
    const least = this.#leftOut > 0 ? usage.withoutThinking : usage.whole;
    return least <= this.room ? null : tooMuch(usage.whole, this.room);
  }

  async #countPending(): Promise<void> {
    clearTimeout(this.#timer);
    const what = this.#pending;
    this.#pending = null;
    if (what) await this.#count(what);
  }

  async #count({ chat, text, pastes, thinking }: CountRequest): Promise<void> {
    const asked = ++this.#asked;
    try {
      await this.measure(pastes);
      const pasted = pastes.reduce((sum, paste) => sum + (this.#texts.get(paste) ?? 0), 0);
      const usage = await this.host.contextUsage(chat, text, pasted, thinking);
      if (usage) this.#put(chat, usage);
      if (asked === this.#asked) this.#forgetDismissed();
    } catch {
      // The chat may have been removed. A figure is not worth an error.
    }
  }

  #put(chat: number | null, usage: ContextUsage): void {
    const others = [...this.#known].filter(([of]) => of !== chat).slice(-KEPT);
    this.#known = new Map([...others, [chat, usage]]);
  }

  /** Re-enables warnings once there is room again. */
  #forgetDismissed(): void {
    if (this.#due === null && !this.conversation.writing) this.#setDismissed(undefined);
  }

  #setDismissed(kind: ContextNotice["kind"] | undefined): void {
    const all = new Map(this.#dismissed);
    if (kind === undefined) {
      if (!all.delete(this.conversation.chat)) return;
    } else all.set(this.conversation.chat, kind);
    this.#dismissed = all;
  }
}

const tooMuch = (needed: number, room: number): string =>
  `That needs ${tokens(needed)}; there is room for ${count(room)}.`;
