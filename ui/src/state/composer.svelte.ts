import type { ChatSummary, Host } from "../host/host";
import type { Notices } from "./notices.svelte";
import { Sequence } from "./sequence";

const SAVE_AFTER_MS = 400;
/** A text of more characters stands beside the box, which is slow with it: nobody edits it there. */
const LONG_TEXT = 20_000;

/** What is written of a message: what was typed, and long texts that were pasted. */
export type Writing = { text: string; pastes: string[] };

/** A message that was taken out of the box of a chat; null is the new chat. */
export type Taken = Writing & { chat: number | null };

/** A text for a box: a long one stands beside it, but for its first paragraph, which says what to do with it. */
export function writingOf(text: string, pastes: string[] = []): Writing {
  if (!isLong(text)) return { text, pastes };
  const [first = ""] = text.split("\n\n", 1);
  const rest = text.slice(first.length + 2);
  return isLong(first) || !isLong(rest)
    ? { text: "", pastes: [text, ...pastes] }
    : { text: first, pastes: [rest, ...pastes] };
}

export const isLong = (text: string): boolean => text.length > LONG_TEXT;

/** All of a message, as it is sent. */
export function whole({ text, pastes }: Writing): string {
  return [text.trim(), ...pastes].filter((part) => part.trim() !== "").join("\n\n");
}

/** The message being written: its text, what was pasted, its thinking switch, and its draft in every chat. */
export class Composer {
  text = $state("");
  pastes = $state.raw<string[]>([]);
  thinking = $state(true);
  /** Counts requests to bring the cursor here. */
  focusRequests = $state(0);
  /** Before the cursor comes. */
  onfocus: () => void = () => undefined;
  #chat: number | null = null;
  #saved = "";
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** The drafts of the chats that were left since the start: newer than what the host says of them. */
  readonly #drafts = new Map<number | null, Writing>();
  /** Drafts that the host does not have: on their way to it, or refused. */
  readonly #unsaved = new Map<number | null, Partial<Writing>>();
  /** By chat, what is asked of the host about its draft. */
  readonly #requests = new Map<number | null, Sequence>();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly empty = $derived(this.text.trim() === "" && this.pastes.length === 0);

  start(newDraft: Writing): void {
    this.#load(null, newDraft);
  }

  /** Moves to another chat, with that chat's draft; null is the new chat. */
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

  /** Takes a long text in beside the text; false where it is short, and belongs into the box. */
  paste(text: string): boolean {
    if (!isLong(text)) return false;
    this.#setPastes([...this.pastes, text]);
    return true;
  }

  removePaste(at: number): void {
    this.#setPastes(this.pastes.toSpliced(at, 1));
  }

  /** Takes the message out of the box, to be sent. Its draft is the host's to clear. */
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

  /** The draft of a message that was taken, and is kept elsewhere now, is none any more. */
  forget({ chat, pastes }: Taken): void {
    const now = chat === this.#chat ? this.text : (this.#drafts.get(chat)?.text ?? "");
    if (now === "") void this.#save(chat, { text: "" });
    if (pastes.length > 0) void this.#save(chat, { pastes: this.#pastesOf(chat) });
  }

  /** Comes when the host has all that was to be saved of a chat's draft. */
  async saved(chat: number | null): Promise<void> {
    await this.#requests.get(chat)?.done;
  }

  /** What is written from now on belongs to `chat`, which the message of a new chat has made. */
  settle(chat: number): void {
    const before = this.#chat;
    this.#chat = chat;
    if (before !== null || (this.text === "" && this.pastes.length === 0)) return;
    // Written while the message was on its way: no draft of a new chat any more.
    this.#drafts.set(null, { text: "", pastes: [] });
    if (this.#saved !== "") void this.#save(null, { text: "" });
    this.#saved = "";
    if (this.text !== "") this.write(this.text);
    if (this.pastes.length === 0) return;
    void this.#save(null, { pastes: [] });
    void this.#save(chat, { pastes: this.pastes });
  }

  /** Has `request` give a chat another id. What is written in it meanwhile is saved under that one. */
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

  /** Puts a refused message back where it came from, before what was written there since. */
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

  /** These chats were removed: should one come back, the host knows its draft. */
  forgetDrafts(chats: number[]): void {
    for (const chat of chats) this.#drafts.delete(chat);
  }

  focus(): void {
    this.onfocus();
    this.focusRequests += 1;
  }

  /** Comes when what is written is saved. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#drafts.set(this.#chat, { text: this.text, pastes: this.pastes });
    if (this.text === this.#saved) return;
    this.#saved = this.text;
    await this.#save(this.#chat, { text: this.text });
  }

  /** Saves the drafts once more that the host has refused. */
  resave(): void {
    for (const [chat, draft] of this.#unsaved) void this.#save(chat, draft);
  }

  /** Lets the model read the chat and what is finished of the message. */
  #readAhead(): void {
    const text = finished({ text: this.text, pastes: this.pastes });
    if (this.#chat === null && text === "") return;
    // Nobody waits for it: what is not read ahead is read when it is sent.
    this.host.readAhead(this.#chat, text, this.thinking).catch(() => undefined);
  }

  #pastesOf(chat: number | null): string[] {
    return chat === this.#chat ? this.pastes : (this.#drafts.get(chat)?.pastes ?? []);
  }

  /** Saved at once: it happens seldom, and a paste may be all there is of something. */
  #setPastes(pastes: string[]): void {
    this.pastes = pastes;
    void this.#save(this.#chat, { pastes });
    this.#readAhead();
  }

  #save(chat: number | null, draft: Partial<Writing>): Promise<void> {
    this.#unsaved.set(chat, { ...this.#unsaved.get(chat), ...draft });
    return this.#inOrder(chat, () => this.#saveNow(chat));
  }

  /** Saves what the host does not have of a draft. */
  async #saveNow(chat: number | null): Promise<void> {
    const draft = this.#unsaved.get(chat);
    if (!draft) return;
    const { text, pastes } = draft;
    const saved = Promise.all([
      text === undefined || this.host.saveDraft(chat, text),
      pastes === undefined || this.host.savePastes(chat, pastes),
    ]);
    if ((await this.notices.guard(saved)) === null) return;
    // What was written meanwhile is not saved yet.
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
    // Earlier versions let a box hold anything.
    const { text, pastes } = writingOf(draft.text, draft.pastes);
    this.#saved = text;
    this.text = text;
    this.pastes = pastes;
    if (text !== draft.text) void this.#save(chat, { text, pastes });
  }
}

/** The start of a message that what is typed next does not change: without a last word that may go on, and what was
 *  pasted behind it. */
function finished({ text, pastes }: Writing): string {
  const end = text.search(/[^\s.:?!]*$/);
  return end < text.length ? text.slice(0, end) : whole({ text, pastes });
}

function joined(before: string, after: string): string {
  return before === "" || after === "" ? before + after : `${before}\n\n${after}`;
}
