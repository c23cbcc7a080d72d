import { tick } from "svelte";
import type {
  ChatPreset,
  ChatView,
  Consent,
  Draft,
  Host,
  HostEvent,
  LengthWish,
  Message,
  Part,
  PartKind,
} from "../host/host";
import { places, terms, type Term } from "../text/query";
import { textsOf } from "../text/shown";
import { Entry } from "./entry.svelte";
import type { Notices } from "./notices.svelte";
import { Visit } from "./visit";
import type { Writing } from "./writing";

type ChatEvent = Extract<
  HostEvent,
  { type: "stage" | "delta" | "called" | "ended" | "chatChanged" }
>;

/** The open chat: its visible branch, and the actions on it. */
export class Conversation {
  /** Open chat, or null for a new one without messages. */
  chat = $state<number | null>(null);
  entries = $state.raw<Entry[]>([]);
  /** Set while an answer is being written in this chat, even on a hidden branch. */
  writing = $state(false);
  /** Preset of the chat; null if none was chosen. */
  preset = $state.raw<ChatPreset | null>(null);
  /** Set while a request changes the branch. */
  busy = $state(false);
  /** Resolves after the last request. */
  shown: Promise<unknown> = Promise.resolve();
  /** Message that is being edited. */
  editing = $state<number | null>(null);
  /** Last question asked while the chat is open. It scrolls to the top of the viewport. */
  asked = $state<number | null>(null);
  /** Message of a search hit and the terms to highlight, until they have been seen. */
  sought = $state<number | null>(null);
  soughtTerms: Term[] = [];
  /** Unsaved edits of messages, kept while another chat is open. */
  readonly edits = new Map<number, Writing>();
  /** Scroll positions of chats left in this session, without those that were at the end. */
  readonly places = new Map<number, { id: number; offset: number }>();
  /** Visit of the chat that is open or being opened. */
  visit = new Visit(null);
  #early: ChatEvent[] = [];
  /** Chats with a stop request for an answer that has not ended. */
  readonly #stopping = new Set<number>();

  readonly last = $derived(this.entries.at(-1));
  /** True while the model thinks before the last visible answer. */
  readonly pondering = $derived(this.last?.pondering ?? false);
  /** Answer with a call that waits for consent. */
  readonly asking = $derived(this.entries.findLast((entry) => entry.asking !== null));
  /** Set until the call that waits has got the focus. */
  callFocusWanted = $state(false);
  readonly lastQuestion = $derived(this.entries.findLast((entry) => entry.role === "user"));
  readonly lastAnswer = $derived(this.entries.findLast((entry) => entry.role === "assistant"));
  /**
   * Start of the model's input for the last answer: index of the first message, and of the first
   * one with its thinking. Null if nothing was left out.
   */
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

  /**
   * Discards everything shown or in transit of removed chats. Returns true if one of them was open.
   */
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

  /**
   * Opens a chat, at the part of this kind in `message` if a search for `query` led there. Resolves
   * to its draft, or to null on failure.
   */
  async open(
    chat: number,
    message: number | null = null,
    query = "",
    kind: PartKind = "text",
  ): Promise<Draft | null> {
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
    const entry = this.entries.find((each) => each.id === message);
    if (entry) this.#unfoldSought(entry, kind);
    this.sought = message;
    return view.draft;
  }

  /** Unfolds the part with the first search term, preferably one of this kind. */
  #unfoldSought(entry: Entry, kind: PartKind): void {
    const isFound = (part: Part): boolean => {
      const { name, content } = textsOf(part);
      return places(`${name} ${content}`, this.soughtTerms).length > 0;
    };
    const { shownParts } = entry;
    const found =
      shownParts.find((part) => part.kind === kind && isFound(part)) ?? shownParts.find(isFound);
    if (found) entry.unfold(shownParts.indexOf(found));
  }

  /** Scrolls to the first message in the model's input. */
  async showReading(): Promise<void> {
    const { reading } = this;
    const first = reading && this.entries[reading.message || reading.thinking];
    if (!first) return;
    this.sought = null;
    this.soughtTerms = [];
    await tick();
    this.sought = first.id;
  }

  /** Includes omitted messages in the next prompt again. */
  readAgain(entry: Entry): Promise<boolean> {
    return this.#act(() => this.host.readAgain(entry.id));
  }

  /** Starts a new chat with a summary of this one; null if refused. */
  startSummary(): Promise<number | null> {
    const { chat } = this;
    return chat === null ? Promise.resolve(null) : this.#ask(() => this.host.startSummary(chat));
  }

  /** Sends a message after `before`. Resolves to its chat, or to null if refused. */
  send(text: string, thinking: boolean, before?: Promise<unknown>): Promise<number | null> {
    const { chat } = this;
    return this.#ask(async () => {
      await before;
      return this.host.send(chat, text, thinking);
    });
  }

  /** Sends a queued message of this chat; false if refused. */
  async sendQueued(request: () => Promise<ChatView>): Promise<boolean> {
    return (await this.#ask(request)) !== null;
  }

  /** Generates an alternative answer, of the given length. */
  regenerate(entry: Entry, thinking: boolean, length: LengthWish | null = null): Promise<boolean> {
    return this.#act(() => this.host.regenerate(entry.id, thinking, length));
  }

  /** Deletes a message and its descendants; false if refused. */
  async delete(entry: Entry): Promise<boolean> {
    return (await this.#ask(() => this.host.deleteMessage(entry.id), false)) !== null;
  }

  /** Ends the thinking so that the answer begins. */
  async answerNow(): Promise<void> {
    if (this.chat === null || !this.pondering) return;
    await this.notices.guard(this.host.answerNow(this.chat));
  }

  /** Applies the user's decision about a call that waits; false if refused. */
  async answerCall(entry: Entry, call: string, consent: Consent): Promise<boolean> {
    const request = this.host.answerCall(entry.id, call, consent).then(() => true);
    return (await this.notices.guard(request)) ?? false;
  }

  /** Scrolls to the call that waits for consent, and focuses it. */
  async showAsking(): Promise<void> {
    const { asking } = this;
    if (!asking) return;
    this.sought = null;
    this.soughtTerms = [];
    await tick();
    this.sought = asking.id;
    this.callFocusWanted = true;
  }

  continue(entry: Entry): Promise<boolean> {
    return this.#act(() => this.host.continueAnswer(entry.id));
  }

  /** Edits a question. `answer`: answers it, with thinking (true) or without; null: does not. */
  edit(entry: Entry, text: string, answer: boolean | null): Promise<boolean> {
    return this.#act(async () => {
      const view = await this.host.editMessage(entry.id, text, answer);
      this.edits.delete(entry.id);
      return view;
    }, answer !== null);
  }

  /** Shows the sibling `step` places after this one. */
  turn(entry: Entry, step: 1 | -1): Promise<boolean> {
    const sibling = entry.siblings[entry.siblings.indexOf(entry.id) + step];
    if (sibling === undefined) return Promise.resolve(false);
    return this.#act(() => this.host.showSibling(sibling));
  }

  /** Returns false if refused. */
  async stop(): Promise<boolean> {
    const { chat } = this;
    if (chat === null || !this.writing) return true;
    this.#stopping.add(chat);
    const stopped = await this.notices.guard(this.host.stop(chat).then(() => true));
    if (stopped === null) this.#stopping.delete(chat);
    return stopped !== null;
  }

  /** Checks if the answer in this chat has a pending stop request. */
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
    const id = typeof event.message === "number" ? event.message : event.message.id;
    const entry = this.entries.find((each) => each.id === id);
    if (!entry) return;
    switch (event.type) {
      case "stage":
        entry.enter(event.stage);
        break;
      case "delta":
        // A pending request brings it anyway.
        if (!entry.append(event) && !this.busy) {
          void this.#show(() => this.host.openChat(event.chat));
        }
        break;
      case "called":
      case "ended":
        entry.absorb(event.message);
        break;
    }
  }

  /** Runs a request. Resolves to the chat that it changed, shown or not, or to null if refused. */
  async #ask(request: () => Promise<ChatView>, asks = true): Promise<number | null> {
    let chat: number | null = null;
    await this.#act(async () => {
      const view = await request();
      chat = view.chat.id;
      return view;
    }, asks);
    return chat;
  }

  /** `asks`: the request adds a question. */
  async #act(request: () => Promise<ChatView>, asks = false): Promise<boolean> {
    if (this.busy) return false;
    this.sought = null;
    return (await this.#show(request, asks)) !== null;
  }

  /** Shows the branch in the response, unless the user has moved on meanwhile. */
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
    // A parent that is not shown means another branch.
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
    // Regardless of the answer's state: it may have failed at once.
    if (asks || (moved && this.writing)) this.asked = this.lastQuestion?.id ?? null;
    else if (moved) this.asked = null;
    if (!this.entries.some((entry) => entry.id === this.editing)) {
      this.editing = this.entries.find((entry) => this.edits.has(entry.id))?.id ?? null;
    }
    // Events may arrive before the response that introduces their message.
    for (const event of this.#early.splice(0)) this.receive(event);
    return view;
  }

  /** Entries up to this message; none if it is not shown. */
  #upTo(message: number): Entry[] {
    return this.entries.slice(0, this.entries.findIndex(({ id }) => id === message) + 1);
  }

  /** Reuses the entries that remain, so that their expanded parts stay expanded. */
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
