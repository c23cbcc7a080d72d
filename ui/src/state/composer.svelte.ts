import type { Host } from "../host/host";
import type { Notices } from "./notices.svelte";

const SAVE_AFTER_MS = 400;

/** The message being written: its text, its thinking switch, and its draft in every chat. */
export class Composer {
  text = $state("");
  thinking = $state(true);
  /** Counts requests to bring the cursor here. */
  focusRequests = $state(0);
  #chat: number | null = null;
  #saved = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  #newDraft = "";

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly empty = $derived(this.text.trim() === "");

  start(newDraft: string): void {
    this.#newDraft = newDraft;
    this.#load(null, newDraft);
  }

  /** Moves to another chat, with that chat's draft; null is the new chat. */
  move(chat: number | null, draft = this.#newDraft): void {
    this.flush();
    this.#load(chat, draft);
  }

  write(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), SAVE_AFTER_MS);
  }

  /** Empties the box after its message was sent to `chat`. */
  sent(chat: number | null): void {
    this.text = "";
    this.flush();
    this.#chat = chat;
  }

  focus(): void {
    this.focusRequests += 1;
  }

  flush(): void {
    clearTimeout(this.#timer);
    if (this.#chat === null) this.#newDraft = this.text;
    if (this.text === this.#saved) return;
    this.#saved = this.text;
    void this.notices.guard(this.host.saveDraft(this.#chat, this.text));
  }

  #load(chat: number | null, draft: string): void {
    this.#chat = chat;
    this.#saved = draft;
    this.text = draft;
  }
}
