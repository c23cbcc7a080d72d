import type { Host } from "../host/host";
import type { Notices } from "./notices.svelte";

const SAVE_AFTER_MS = 400;

/** A message that was taken out of the box of a chat; null is the new chat. */
export type Taken = { chat: number | null; text: string };

/** The message being written: its text, its thinking switch, and its draft in every chat. */
export class Composer {
  text = $state("");
  thinking = $state(true);
  /** Counts requests to bring the cursor here. */
  focusRequests = $state(0);
  #chat: number | null = null;
  #saved = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The drafts of the chats that were left since the start: newer than what the host says of them. */
  readonly #drafts = new Map<number | null, string>();
  /** Drafts that the host does not have: on their way to it, or refused. */
  readonly #unsaved = new Map<number | null, string>();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly empty = $derived(this.text.trim() === "");

  start(newDraft: string): void {
    this.#load(null, newDraft);
  }

  /** Moves to another chat, with that chat's draft; null is the new chat. */
  move(chat: number | null, draft = ""): void {
    if (chat === this.#chat) return;
    this.flush();
    this.#load(chat, this.#drafts.get(chat) ?? draft);
  }

  write(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), SAVE_AFTER_MS);
  }

  /** Takes the message out of the box, to be sent. Its draft is the host's to clear. */
  take(): Taken {
    clearTimeout(this.#timer);
    const taken = { chat: this.#chat, text: this.text };
    this.text = "";
    this.#saved = "";
    this.#drafts.set(this.#chat, "");
    this.#unsaved.delete(this.#chat);
    return taken;
  }

  /** What is written from now on belongs to `chat`, which the message of a new chat has made. */
  settle(chat: number): void {
    const before = this.#chat;
    this.#chat = chat;
    if (before !== null || this.text === "") return;
    // Typed while the message was on its way: no draft of a new chat any more.
    this.#drafts.set(null, "");
    if (this.#saved !== "") void this.#save(null, "");
    this.#saved = "";
    this.write(this.text);
  }

  /** Puts a refused message back where it came from, before what was written there since. */
  putBack({ chat, text }: Taken): void {
    const since = chat === this.#chat ? this.text : (this.#drafts.get(chat) ?? "");
    const draft = since === "" ? text : `${text}\n\n${since}`;
    if (chat === this.#chat) {
      this.write(draft);
      return;
    }
    this.#drafts.set(chat, draft);
    void this.#save(chat, draft);
  }

  focus(): void {
    this.focusRequests += 1;
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#drafts.set(this.#chat, this.text);
    if (this.text === this.#saved) return;
    this.#saved = this.text;
    void this.#save(this.#chat, this.text);
  }

  /** Saves the drafts once more that the host has refused. */
  resave(): void {
    for (const [chat, text] of this.#unsaved) void this.#save(chat, text);
  }

  async #save(chat: number | null, text: string): Promise<void> {
    this.#unsaved.set(chat, text);
    const saved = this.host.saveDraft(chat, text).then(() => true);
    if ((await this.notices.guard(saved)) && this.#unsaved.get(chat) === text)
      this.#unsaved.delete(chat);
  }

  #load(chat: number | null, draft: string): void {
    this.#chat = chat;
    this.#saved = draft;
    this.text = draft;
  }
}
