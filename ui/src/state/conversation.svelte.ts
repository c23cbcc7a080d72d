import { tick } from "svelte";
import type {
  ChatPreset,
  ChatView,
  Draft,
  Host,
  HostEvent,
  LengthWish,
  Message,
} from "../host/host";
import { places, terms, type Term } from "../text/query";
import type { Writing } from "./composer.svelte";
import { Entry } from "./entry.svelte";
import type { Notices } from "./notices.svelte";
import { Visit } from "./visit";

type ChatEvent = Extract<HostEvent, { type: "stage" | "delta" | "ended" | "chatChanged" }>;

/** The chat that is open: its shown branch, and what a person can do with it. */
export class Conversation {
  /** The open chat; null for a new one that has no message yet. */
  chat = $state<number | null>(null);
  entries = $state.raw<Entry[]>([]);
  /** An answer is being written in this chat, on the branch that is shown or on another one. */
  writing = $state(false);
  /** What was chosen for the chat to be answered with; null: nothing was. */
  preset = $state.raw<ChatPreset | null>(null);
  /** A request that changes the branch is under way. */
  busy = $state(false);
  /** Comes when the request that was begun last is over. */
  shown: Promise<unknown> = Promise.resolve();
  /** The message whose text is open for editing. */
  editing = $state<number | null>(null);
  /** The question that was asked last while the chat was open: it rises to the top of the view. */
  asked = $state<number | null>(null);
  /** The message that a search led to, and the words that were looked for, until they have been seen. */
  sought = $state<number | null>(null);
  soughtTerms: Term[] = [];
  /** What is written of messages that are being edited, kept while another chat is looked at. */
  readonly edits = new Map<number, Writing>();
  /** Where the view stood in the chats that were left; a chat that was left at its end is not here. */
  readonly places = new Map<number, { id: number; offset: number }>();
  /** The stay with the chat that is open, or is being opened. */
  visit = new Visit(null);
  #early: ChatEvent[] = [];
  /** Chats whose answer was asked to stop, until it has ended. */
  readonly #stopping = new Set<number>();

  readonly last = $derived(this.entries.at(-1));
  /** The model thinks before the answer that is shown last. */
  readonly pondering = $derived(this.last?.pondering ?? false);
  readonly lastQuestion = $derived(this.entries.findLast((entry) => entry.role === "user"));
  readonly lastAnswer = $derived(this.entries.findLast((entry) => entry.role === "assistant"));
  /** Where the model began to read for the last answer: the places of the first message, and of the first one with its
   *  thinking. Null: it was given all, or will be. */
  readonly reading = $derived.by((): { message: number; thinking: number } | null => {
    const from = this.lastAnswer?.readFrom;
    if (!from || from.again) return null;
    const place = (id: number | null): number =>
      id === null
        ? 0
        : Math.max(
            0,
            this.entries.findIndex((entry) => entry.id === id),
          );
    const message = place(from.message);
    return { message, thinking: Math.max(message, place(from.thinking)) };
  });

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Leaves the open chat for a new one. */
  clear(): void {
    this.#begin(null);
    this.busy = false;
    this.#empty();
  }

  /** Takes away what is shown or on its way of chats that were removed. True where one of them was open. */
  lose(chats: number[]): boolean {
    const { visit } = this;
    const wasOpen = this.chat !== null && chats.includes(this.chat);
    if (wasOpen) this.#empty();
    if (visit.chat !== null && chats.includes(visit.chat)) {
      visit.chat = this.chat;
      this.busy = false;
    }
    return wasOpen;
  }

  #empty(): void {
    this.chat = null;
    this.preset = null;
    this.entries = [];
    this.sought = null;
    this.asked = null;
    this.editing = null;
    this.writing = false;
  }

  #begin(chat: number | null): void {
    this.visit.lasts = false;
    this.visit = new Visit(chat);
  }

  /** Opens a chat, at `message` when a search for `query` led there; its draft, or null when it did not open. */
  async open(chat: number, message: number | null = null, query = ""): Promise<Draft | null> {
    this.sought = null;
    this.#begin(chat);
    const { visit } = this;
    const view = await this.#show(async () => {
      const first = await this.host.openChat(chat);
      const isShown = message === null || first.messages.some((each) => each.id === message);
      if (isShown || !visit.lasts) return first;
      const branch = await this.notices.guard(this.host.showSibling(message));
      return branch && visit.lasts ? this.host.openChat(chat) : first;
    });
    if (!view) return null;
    this.soughtTerms = terms(query);
    // What was found may lie in a fold.
    const entry = this.entries.find((each) => each.id === message);
    if (entry && this.soughtTerms.length > 0) {
      entry.unfold(places(entry.text, this.soughtTerms).length > 0 ? "whole" : "thinking");
    }
    this.sought = message;
    return view.draft;
  }

  /** Brings the message into view from which on the model has read. */
  async showReading(): Promise<void> {
    const { reading } = this;
    const first = reading && this.entries[reading.message || reading.thinking];
    if (!first) return;
    this.sought = null;
    this.soughtTerms = [];
    await tick();
    this.sought = first.id;
  }

  /** Has the next answer read again what was left out. */
  readAgain(entry: Entry): Promise<boolean> {
    return this.#act(() => this.host.readAgain(entry.id));
  }

  /** Begins a new chat with a summary of this one; null when it was refused. */
  startSummary(): Promise<number | null> {
    const { chat } = this;
    return chat === null ? Promise.resolve(null) : this.#ask(() => this.host.startSummary(chat));
  }

  /** The chat that the message was sent to, once `before` is over; null when it was refused. */
  send(text: string, thinking: boolean, before?: Promise<unknown>): Promise<number | null> {
    const { chat } = this;
    return this.#ask(async () => {
      await before;
      return this.host.send(chat, text, thinking);
    });
  }

  /** Sends a message that has waited in this chat; false when it was refused. */
  async sendQueued(request: () => Promise<ChatView>): Promise<boolean> {
    return (await this.#ask(request)) !== null;
  }

  /** Another answer beside this one, of a length that is wished for. */
  regenerate(entry: Entry, thinking: boolean, length: LengthWish | null = null): Promise<boolean> {
    return this.#act(() => this.host.regenerate(entry.id, thinking, length));
  }

  /** Deletes a message with what follows it; false when it was refused. */
  async delete(entry: Entry): Promise<boolean> {
    return (await this.#ask(() => this.host.deleteMessage(entry.id), false)) !== null;
  }

  /** Has the answer begin that is still being thought about. */
  async answerNow(): Promise<void> {
    if (this.chat === null || !this.pondering) return;
    await this.notices.guard(this.host.answerNow(this.chat));
  }

  continue(entry: Entry): Promise<boolean> {
    return this.#act(() => this.host.continueAnswer(entry.id));
  }

  /** `answer`: the edited question is answered, with thinking or without. */
  edit(entry: Entry, text: string, answer: boolean | null): Promise<boolean> {
    return this.#act(async () => {
      const view = await this.host.editMessage(entry.id, text, answer);
      this.edits.delete(entry.id);
      return view;
    }, answer !== null);
  }

  /** Shows the version `step` places after this one. */
  turn(entry: Entry, step: 1 | -1): Promise<boolean> {
    const sibling = entry.siblings[entry.siblings.indexOf(entry.id) + step];
    if (sibling === undefined) return Promise.resolve(false);
    return this.#act(() => this.host.showSibling(sibling));
  }

  /** False where it was refused. */
  async stop(): Promise<boolean> {
    const { chat } = this;
    if (chat === null || !this.writing) return true;
    this.#stopping.add(chat);
    const stopped = await this.notices.guard(this.host.stop(chat).then(() => true));
    if (stopped === null) this.#stopping.delete(chat);
    return stopped !== null;
  }

  /** The answer in this chat was asked to stop, and has not ended. */
  isStopping(chat: number): boolean {
    return this.#stopping.has(chat);
  }

  receive(event: ChatEvent): void {
    if (this.busy) this.#early.push(event);
    if (event.type === "ended") this.#stopping.delete(event.chat);
    if (event.type === "chatChanged") {
      if (event.chat.id === this.chat) this.writing = event.chat.writing;
      return;
    }
    if (event.chat !== this.chat) return;
    const id = event.type === "ended" ? event.message.id : event.message;
    const entry = this.entries.find((each) => each.id === id);
    if (!entry) return;
    switch (event.type) {
      case "stage":
        entry.enter(event.stage);
        break;
      case "delta":
        // After a request that is under way it is received again.
        if (!entry.append(event) && !this.busy) {
          void this.#show(() => this.host.openChat(event.chat));
        }
        break;
      case "ended":
        entry.absorb(event.message);
        break;
    }
  }

  /** The chat in which the host has done what was asked, shown or not; null when it was refused. */
  async #ask(request: () => Promise<ChatView>, asks = true): Promise<number | null> {
    let chat: number | null = null;
    await this.#act(async () => {
      const view = await request();
      chat = view.chat.id;
      return view;
    }, asks);
    return chat;
  }

  /** `asks`: the request asks a new question. */
  async #act(request: () => Promise<ChatView>, asks = false): Promise<boolean> {
    if (this.busy) return false;
    this.sought = null;
    return (await this.#show(request, asks)) !== null;
  }

  /** Shows the branch that `request` answers with, unless the person has moved on meanwhile. */
  #show(request: () => Promise<ChatView>, asks = false): Promise<ChatView | null> {
    const shown = this.#request(request, asks);
    this.shown = shown;
    return shown;
  }

  async #request(request: () => Promise<ChatView>, asks: boolean): Promise<ChatView | null> {
    const { visit } = this;
    const { chat } = visit;
    const isOver = (): boolean => !visit.lasts || visit.chat !== chat;
    this.busy = true;
    this.#early = [];
    let view = await this.notices.guard(request());
    if (isOver()) return null;
    // What follows a message that is not shown here is of another branch.
    if (view && view.after !== null && this.#upTo(view.after).length === 0) {
      view = await this.notices.guard(this.host.openChat(view.chat.id));
      if (isOver()) return null;
    }
    this.busy = false;
    if (!view) {
      visit.chat = this.chat;
      return null;
    }
    const moved = this.chat !== view.chat.id;
    this.chat = visit.chat = view.chat.id;
    this.preset = view.preset;
    this.writing = view.chat.writing;
    const kept = view.after === null ? [] : this.#upTo(view.after);
    this.entries = [...kept, ...this.#merge(view.messages)];
    // Whatever has become of its answer meanwhile: it may have failed at once.
    if (asks || (moved && this.writing)) this.asked = this.lastQuestion?.id ?? null;
    else if (moved) this.asked = null;
    if (!this.entries.some((entry) => entry.id === this.editing)) {
      this.editing = this.entries.find((entry) => this.edits.has(entry.id))?.id ?? null;
    }
    // Events may overtake the answer that introduces their message.
    for (const event of this.#early.splice(0)) this.receive(event);
    return view;
  }

  /** The entries up to this message; none where it is not shown. */
  #upTo(message: number): Entry[] {
    return this.entries.slice(0, this.entries.findIndex(({ id }) => id === message) + 1);
  }

  /** Keeps the entries that stay, so that what the person unfolded stays unfolded. */
  #merge(messages: Message[]): Entry[] {
    const known = new Map(this.entries.map((entry) => [entry.id, entry]));
    return messages.map((message) => {
      const entry = known.get(message.id);
      if (!entry) return new Entry(message);
      entry.absorb(message);
      return entry;
    });
  }
}
