import type { ContextUsage, Host } from "../host/host";
import { count, tokens } from "../text/figures";
import type { Conversation } from "./conversation.svelte";
import type { Model } from "./model.svelte";

/** A pause in typing after which is counted. */
const COUNT_AFTER_MS = 150;
/** Chats whose last counts are kept. */
const KEPT = 50;
/** Long texts whose counts are kept: each may have megabytes. */
const KEPT_TEXTS = 10;
/** Of what the model can read, the share in use from which on the window says so. */
const NEARLY_FULL = 0.8;

/** A part of what the context is filled with. */
export type ContextPart = {
  key: "instructions" | "chat" | "thinking" | "pasted" | "message" | "answer" | "free";
  label: string;
  tokens: number;
};

/** What is said above the composer. */
export type ContextNotice =
  | { kind: "too-long"; needed: number; room: number }
  | { kind: "leaves-out"; messages: number }
  | { kind: "nearly-full"; percent: number };

/** What the next prompt is made of. */
export type CountRequest = {
  chat: number | null;
  text: string;
  pastes: string[];
  thinking: boolean;
};

/** How full the model's context is: counted by the host, and by the pace of an answer while that is written. */
export class Context {
  /** The last counts of chats: where there is no model to count, they are still shown. */
  #known = $state.raw<ReadonlyMap<number | null, ContextUsage>>(new Map());
  /** Tokens of the texts that were pasted. */
  #texts = $state.raw<ReadonlyMap<string, number>>(new Map());
  /** What was put aside, by chat. */
  #dismissed = $state.raw<ReadonlyMap<number | null, ContextNotice["kind"]>>(new Map());
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** What is counted when that has passed. */
  #pending: CountRequest | null = null;
  #asked = 0;

  constructor(
    private readonly host: Host,
    private readonly conversation: Conversation,
    private readonly model: Model,
  ) {}

  readonly usage = $derived.by(() => this.#known.get(this.conversation.chat) ?? null);
  /** Tokens of the answer that is being written that came after the count. */
  readonly #grown = $derived.by(() => {
    const { last } = this.conversation;
    if (!this.usage || !last?.writing || !last.pace) return 0;
    return Math.max(0, last.pace.tokens - (this.usage.written ?? 0));
  });
  /** What the chat takes without what is written of the next message. */
  readonly #ofChat = $derived.by(() => {
    const { usage } = this;
    return usage ? usage.instructions + usage.chat + usage.thinking + this.#grown : 0;
  });
  readonly used = $derived.by(() =>
    this.usage ? this.#ofChat + this.usage.pasted + this.usage.message : 0,
  );
  /** The longest prompt. */
  readonly room = $derived.by(() => (this.usage ? this.usage.context - this.usage.reserved : 0));
  readonly share = $derived.by(() =>
    this.usage ? Math.min(this.used / this.usage.context, 1) : 0,
  );
  /** Soon something has to be left out. */
  readonly nearlyFull = $derived.by(() => this.used >= NEARLY_FULL * this.room && this.used > 0);
  /** What need not be read for the next answer. */
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
      part("chat", "Chat", usage.chat + (thinks ? 0 : this.#grown)),
      part("thinking", "Thinking", usage.thinking + (thinks ? this.#grown : 0)),
      part("pasted", "Pasted texts", usage.pasted),
      part("message", "This message", usage.message),
      part("answer", "Kept for the answer", answer),
      part("free", "Free", left - answer),
    ];
  });

  /** What a person should know before the next message, unless they have put it aside. */
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
  /** Messages that the last answer was not given. */
  readonly #leftOut = $derived.by(() => this.conversation.lastAnswer?.omitted?.messages ?? 0);

  readonly tooLong = $derived.by(() => this.#due?.kind === "too-long");

  /** Whether the next message is longer than the model can read, by a count of all of it. */
  async refuses(): Promise<boolean> {
    await this.#countPending();
    return this.tooLong;
  }

  /** Puts the notice aside, until there is something worse to say. */
  dismiss(): void {
    const { notice } = this;
    if (notice) this.#setDismissed(notice.kind);
  }

  /** Tokens of a text, where they were counted. */
  tokensOf(text: string): number | null {
    return this.#texts.get(text) ?? null;
  }

  /** Has the tokens of long texts counted. */
  async measure(texts: string[]): Promise<void> {
    const uncounted = texts.filter((text) => !this.#texts.has(text));
    if (uncounted.length === 0) return;
    const counts = await this.host.countTokens(uncounted).catch(() => null);
    if (!counts) return;
    const counted = uncounted.map((text, at) => [text, counts[at] ?? 0] as const);
    this.#texts = new Map([...[...this.#texts].slice(-KEPT_TEXTS), ...counted]);
  }

  /** Has it counted what the next prompt is made of, once nothing has changed for a moment. */
  count(what: CountRequest): void {
    clearTimeout(this.#timer);
    this.#pending = what;
    this.#timer = setTimeout(() => void this.#countPending(), COUNT_AFTER_MS);
  }

  /** Why all cannot be read again; null: it can. */
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
      // The chat may be gone by now; nobody waits for a figure.
    }
  }

  #put(chat: number | null, usage: ContextUsage): void {
    const others = [...this.#known].filter(([of]) => of !== chat).slice(-KEPT);
    this.#known = new Map([...others, [chat, usage]]);
  }

  /** Where there is room again, the next warning is a new one. */
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
