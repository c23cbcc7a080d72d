import type { ChatSummary, Host } from "../host/host";
import type { Layout } from "./layout.svelte";
import type { Notices } from "./notices.svelte";
import { Sequence } from "./sequence";
import type { Thinking } from "./thinking.svelte";
import type { Writing } from "./writing";

const SAVE_AFTER_MS = 400;
/**
 * Length, in characters, above which a text is shown beside the box, which would be slow with it.
 */
const LONG_TEXT = 20_000;

/** A message taken from the box of a chat; null is the new chat. */
export type Taken = Writing & { chat: number | null };

/**
 * Splits a text for the box: of a long one, only its first paragraph stays, which often says what
 * to do with it.
 */
export function writingOf(text: string, pastes: string[] = []): Writing {
  if (!isLong(text)) return { text, pastes };
  const [first = ""] = text.split("\n\n", 1);
  const rest = text.slice(first.length + 2);
  return isLong(first) || !isLong(rest)
    ? { text: "", pastes: [text, ...pastes] }
    : { text: first, pastes: [rest, ...pastes] };
}

export const isLong = (text: string): boolean => text.length > LONG_TEXT;

/** Full text of a message, as it is sent. */
export function whole({ text, pastes }: Writing): string {
  return [text.trim(), ...pastes].filter((part) => part.trim() !== "").join("\n\n");
}

/** The message being written: its text and pasted texts, and the draft of every chat. */
export class Composer {
  text = $state("");
  pastes = $state.raw<string[]>([]);
  /** Counts requests to focus the box. */
  focusRequests = $state(0);
  #chat: number | null = null;
  #saved = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Drafts of chats left in this session, newer than those of the host. */
  readonly #drafts = new Map<number | null, Writing>();
  /** Drafts that the host has not saved: in transit or refused. */
  readonly #unsaved = new Map<number | null, Partial<Writing>>();
  /** Draft requests to the host, by chat. */
  readonly #requests = new Map<number | null, Sequence>();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly thinking: Thinking,
    private readonly layout: Layout,
  ) {}

  readonly empty = $derived(this.text.trim() === "" && this.pastes.length === 0);

  start(newDraft: Writing): void {
    this.#load(null, newDraft);
  }

  /** Switches to another chat and its draft; null is the new chat. */
  move(chat: number | null, draft: Writing = { text: "", pastes: [] }): void {
    if (chat === this.#chat) return;
    void this.flush();
    this.#load(chat, this.#drafts.get(chat) ?? { ...draft, ...this.#unsaved.get(chat) });
    this.#readAhead();
  }

  write(text: string): void {
    this.text = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      void this.flush();
      this.#readAhead();
    }, SAVE_AFTER_MS);
  }

  /** Adds a long pasted text beside the box. Returns false if it is short enough for the box. */
  paste(text: string): boolean {
    if (!isLong(text)) return false;
    this.#setPastes([...this.pastes, text]);
    return true;
  }

  removePaste(at: number): void {
    this.#setPastes(this.pastes.toSpliced(at, 1));
  }

  /** Takes the message from the box in order to send it. The host clears its draft. */
  take(): Taken {
    clearTimeout(this.#timer);
    const taken = { chat: this.#chat, text: this.text, pastes: this.pastes };
    this.text = "";
    this.pastes = [];
    this.#saved = "";
    this.#drafts.set(this.#chat, { text: "", pastes: [] });
    this.#unsaved.delete(this.#chat);
    return taken;
  }

  /** Clears the draft of a taken message that is now stored elsewhere. */
  forget({ chat, pastes }: Taken): void {
    const now = chat === this.#chat ? this.text : (this.#drafts.get(chat)?.text ?? "");
    if (now === "") void this.#save(chat, { text: "" });
    if (pastes.length > 0) void this.#save(chat, { pastes: this.#pastesOf(chat) });
  }

  /** Resolves once the host has saved the draft of a chat. */
  async saved(chat: number | null): Promise<void> {
    await this.#requests.get(chat)?.done;
  }

  /** Assigns the draft to `chat`, which the first message of a new chat has created. */
  settle(chat: number): void {
    const before = this.#chat;
    this.#chat = chat;
    if (before !== null || (this.text === "" && this.pastes.length === 0)) return;
    // Typed while the message was in transit, so no longer a draft of the new chat.
    this.#drafts.set(null, { text: "", pastes: [] });
    if (this.#saved !== "") void this.#save(null, { text: "" });
    this.#saved = "";
    if (this.text !== "") this.write(this.text);
    if (this.pastes.length === 0) return;
    void this.#save(null, { pastes: [] });
    void this.#save(chat, { pastes: this.pastes });
  }

  /**
   * Runs `request`, which gives a chat another id. Text typed meanwhile is saved under the new id.
   */
  rename(from: number, request: () => Promise<ChatSummary | null>): Promise<ChatSummary | null> {
    if (from === this.#chat) void this.flush();
    return this.#inOrder(from, async () => {
      const chat = await request();
      if (!chat) return null;
      const { id: to } = chat;
      if (from === this.#chat) this.#chat = to;
      const [draft, unsaved] = [this.#drafts.get(from), this.#unsaved.get(from)];
      this.#drafts.delete(from);
      this.#unsaved.delete(from);
      if (draft) this.#drafts.set(to, draft);
      if (unsaved) void this.#save(to, unsaved);
      return chat;
    });
  }

  /** Returns a refused message to its box, before any text typed since. */
  putBack({ chat, text, pastes }: Taken): void {
    const here = chat === this.#chat;
    const since = here ? this.text : (this.#drafts.get(chat)?.text ?? "");
    const draft = { text: joined(text, since), pastes: [...pastes, ...this.#pastesOf(chat)] };
    if (here) {
      this.write(draft.text);
      if (pastes.length > 0) this.#setPastes(draft.pastes);
      return;
    }
    this.#drafts.set(chat, draft);
    void this.#save(chat, pastes.length > 0 ? draft : { text: draft.text });
  }

  /** Drops the drafts of removed chats: the host has them if a chat is restored. */
  forgetDrafts(chats: number[]): void {
    for (const chat of chats) this.#drafts.delete(chat);
  }

  focus(): void {
    // The box must not have the focus while the drawer covers it.
    this.layout.closeDrawer();
    this.focusRequests += 1;
  }

  /** Resolves once the text is saved. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#drafts.set(this.#chat, { text: this.text, pastes: this.pastes });
    if (this.text === this.#saved) return;
    this.#saved = this.text;
    await this.#save(this.#chat, { text: this.text });
  }

  /** Retries the drafts that the host has refused. */
  resave(): void {
    for (const [chat, draft] of this.#unsaved) void this.#save(chat, draft);
  }

  /** Lets the model prefill the chat and the finished part of the message. */
  #readAhead(): void {
    const text = finished({ text: this.text, pastes: this.pastes });
    if (this.#chat === null && text === "") return;
    // Errors are harmless: anything not prefilled is read after sending.
    this.host.readAhead(this.#chat, text, this.thinking.wanted).catch(() => undefined);
  }

  #pastesOf(chat: number | null): string[] {
    return chat === this.#chat ? this.pastes : (this.#drafts.get(chat)?.pastes ?? []);
  }

  /** Not debounced: pastes are rare, and may hold the only copy of a text. */
  #setPastes(pastes: string[]): void {
    this.pastes = pastes;
    void this.#save(this.#chat, { pastes });
    this.#readAhead();
  }

  #save(chat: number | null, draft: Partial<Writing>): Promise<void> {
    this.#unsaved.set(chat, { ...this.#unsaved.get(chat), ...draft });
    return this.#inOrder(chat, () => this.#saveNow(chat));
  }

  /** Saves the unsaved parts of a draft. */
  async #saveNow(chat: number | null): Promise<void> {
    const draft = this.#unsaved.get(chat);
    if (!draft) return;
    const { text, pastes } = draft;
    const saved = Promise.all([
      text === undefined || this.host.saveDraft(chat, text),
      pastes === undefined || this.host.savePastes(chat, pastes),
    ]);
    if ((await this.notices.guard(saved)) === null) return;
    // Text typed meanwhile is not saved yet.
    const left = { ...this.#unsaved.get(chat) };
    if (left.text === text) delete left.text;
    if (left.pastes === pastes) delete left.pastes;
    if (left.text === undefined && left.pastes === undefined) this.#unsaved.delete(chat);
    else this.#unsaved.set(chat, left);
  }

  #inOrder<T>(chat: number | null, request: () => Promise<T>): Promise<T> {
    const requests = this.#requests.get(chat) ?? new Sequence();
    this.#requests.set(chat, requests);
    return requests.run(request);
  }

  #load(chat: number | null, draft: Writing): void {
    this.#chat = chat;
    // Earlier versions allowed a text of any length in the box.
    const { text, pastes } = writingOf(draft.text, draft.pastes);
    this.#saved = text;
    this.text = text;
    this.pastes = pastes;
    if (text !== draft.text) void this.#save(chat, { text, pastes });
  }
}

/**
 * Prefix of the message that further typing cannot change: it excludes an unfinished last word and
 * the pasted texts after it.
 */
function finished({ text, pastes }: Writing): string {
  const end = text.search(/[^\s.:?!]*$/);
  return end < text.length ? text.slice(0, end) : whole({ text, pastes });
}

function joined(before: string, after: string): string {
  return before === "" || after === "" ? before + after : `${before}\n\n${after}`;
}
