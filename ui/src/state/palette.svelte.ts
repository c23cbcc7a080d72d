import type { ChatSummary, Host, SearchAnswer } from "../host/host";
import { fold, places, terms } from "../text/query";
import { type Part, partsAt } from "../text/snippet";
import type { Chats } from "./chats.svelte";
import type { Conversation } from "./conversation.svelte";
import { hitGroup, type HitGroup, type HitLine, noteOn } from "./hits";
import { reason } from "./notices.svelte";

/** What can be done now. */
export type PaletteCommand = {
  name: string;
  /** Other words by which it is found. */
  keywords: string;
  keys: string | undefined;
  slash: string | undefined;
  run: () => void;
};

/** A line of the palette that can be chosen. `key` stays the same while more is found. */
export type PaletteRow = { key: string } & (
  | { type: "chat"; chat: ChatSummary }
  | { type: "command"; command: PaletteCommand; name: Part[] }
  | { type: "hit"; group: HitGroup; line: HitLine; first: boolean }
  | { type: "more"; group: HitGroup; count: number }
);

export type PaletteSection = { name: string; rows: PaletteRow[] };

/** Chats that are shown before anything is typed. */
const RECENT = 8;
/** Commands among other things. */
const FEW_COMMANDS = 5;
const NOTHING: SearchAnswer = { chats: [], more: false, indexing: false };
/** A page, for the keys that go through the list by pages. */
const PAGE = 8;
/** So long the commands wait for the chats, that all come at once. */
const COMMANDS_AFTER_MS = 150;

/**
 * Chats, messages and commands in one list. What is listed answers one query as a whole, and what comes late is put
 * below it, so that nothing moves under the hand; what answers an earlier query is dropped.
 */
export class Palette {
  shown = $state(false);
  query = $state("");
  sections = $state.raw<PaletteSection[]>([]);
  /** The key of the row that Enter chooses. */
  active = $state<string | null>(null);
  /** Why the chats could not be searched. */
  fault = $state<string | null>(null);
  /** The query that the list answers, and whether it answers it in full. */
  #listed = $state("");
  #whole = $state(true);
  #answer = $state.raw(NOTHING);
  #looking = false;
  /** Enter was pressed before there was an answer. */
  #chosen = false;
  #late: ReturnType<typeof setTimeout> | undefined;
  /** The commands that can be run. */
  commands: () => PaletteCommand[] = () => [];
  /** Opens a chat, at a message where a search for `query` led there. */
  onopen: (chat: number, message: number | null, query: string) => void = () => undefined;

  constructor(
    private readonly host: Host,
    private readonly chats: Chats,
    private readonly conversation: Conversation,
  ) {}

  readonly rows = $derived(this.sections.flatMap(({ rows }) => rows));
  /** What the list leaves out. */
  readonly note = $derived(
    this.#listed === this.query && this.#whole ? noteOn(this.#answer) : null,
  );
  /** What is said of the list. */
  readonly words = $derived.by(() => {
    if (this.query.trim() === "" || this.#listed !== this.query || !this.#whole) return "";
    const found = this.rows.filter(({ type }) => type !== "more").length;
    if (found === 0) return `Nothing found for “${this.query.trim()}”`;
    return found === 1 ? "1 result" : `${found} results`;
  });

  open(query = ""): void {
    this.shown = true;
    this.ask(query);
  }

  close(): void {
    this.shown = false;
    this.#chosen = false;
    clearTimeout(this.#late);
  }

  ask(query: string): void {
    this.query = query;
    this.#chosen = false;
    clearTimeout(this.#late);
    if (query.trim() === "") {
      this.#list(query, NOTHING, true);
      return;
    }
    this.#late = setTimeout(() => this.#list(query, NOTHING, false), COMMANDS_AFTER_MS);
    void this.#look();
  }

  /** Goes `step` rows on; past an end it goes round. */
  step(step: 1 | -1): void {
    this.#go((at, count) => (at + step + count) % count);
  }

  /** Goes a page on, up to the end. */
  page(step: 1 | -1): void {
    this.#go((at, count) => Math.min(Math.max(at + step * PAGE, 0), count - 1));
  }

  toEnd(end: "first" | "last"): void {
    this.#go((_, count) => (end === "first" ? 0 : count - 1));
  }

  /** Chooses the active row, as soon as the list answers what is typed. */
  enter(): void {
    if (this.#listed !== this.query) {
      this.#chosen = true;
      return;
    }
    const row = this.rows.find(({ key }) => key === this.active);
    if (row) this.choose(row);
  }

  choose(row: PaletteRow): void {
    if (row.type === "more") {
      void this.#unfold(row.group);
      return;
    }
    this.close();
    switch (row.type) {
      case "chat":
        this.onopen(row.chat.id, null, "");
        break;
      case "command":
        row.command.run();
        break;
      case "hit":
        this.onopen(row.group.chat, row.line.message, this.#listed);
        break;
      default:
        row satisfies never;
    }
  }

  /** Asks for one query at a time: while one is looked for, only the last of those that follow counts. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    while (
      this.shown &&
      this.query.trim() !== "" &&
      !(this.#listed === this.query && this.#whole)
    ) {
      const { query } = this;
      let fault: string | null = null;
      const answer = await this.host.search(query).catch((error: unknown) => {
        fault = reason(error);
        return NOTHING;
      });
      if (query !== this.query) continue;
      clearTimeout(this.#late);
      this.#list(query, answer, true);
      this.fault = fault;
    }
    this.#looking = false;
  }

  #list(query: string, answer: SearchAnswer, whole: boolean): void {
    const before = this.active;
    const same = query === this.#listed;
    this.#listed = query;
    this.#whole = whole;
    this.#answer = answer;
    this.fault = null;
    this.#arrange();
    // Of the same words the list only grows.
    const stays = same && this.rows.some(({ key }) => key === before);
    this.active = stays ? before : (this.rows[0]?.key ?? null);
    if (this.#chosen && this.active !== null) {
      this.#chosen = false;
      this.enter();
    }
  }

  #arrange(): void {
    const query = this.#listed;
    const sections =
      query.trim() === ""
        ? [
            { name: "Recent chats", rows: this.#recent() },
            { name: "Commands", rows: this.#commands("") },
          ]
        : [
            { name: "Commands", rows: this.#commands(query).slice(0, FEW_COMMANDS) },
            { name: "Chats and messages", rows: this.#found() },
          ];
    this.sections = sections.filter(({ rows }) => rows.length > 0);
  }

  /** The chats that were written in last, but for the one that is open: Enter goes back to the one before. */
  #recent(): PaletteRow[] {
    const { chats, conversation } = this;
    const others = chats.listed.slice(0, RECENT + 1).filter(({ id }) => id !== conversation.chat);
    return others
      .slice(0, RECENT)
      .map((chat): PaletteRow => ({ key: `chat-${chat.id}`, type: "chat", chat }));
  }

  /** Commands whose names have the words come before those that are found by other words. */
  #commands(query: string): PaletteRow[] {
    const wanted = terms(query);
    const words = wordsOf(query);
    // Signs alone name no command.
    const able = wanted.length > 0 && words.length === 0 ? [] : this.commands();
    const named = able.filter(({ name }) => haveWords(name, words));
    const others = able.filter(
      (command) =>
        !named.includes(command) &&
        query.trim().length > 1 &&
        haveWords(`${command.name} ${command.keywords}`, words),
    );
    return [...named, ...others].map((command): PaletteRow => {
      const name = partsAt(command.name, places(command.name, wanted));
      return { key: `command-${command.name}`, type: "command", command, name };
    });
  }

  #found(): PaletteRow[] {
    return this.#answer.chats.map(hitGroup).flatMap((group) => {
      const all = group.lines.map((line, at): PaletteRow => ({
        key: hitKey(group.chat, line),
        type: "hit",
        group,
        line,
        first: at === 0,
      }));
      if (group.more === 0) return all;
      const { more: count } = group;
      const more: PaletteRow = { key: `more-${group.chat}`, type: "more", group, count };
      return [...all, more];
    });
  }

  /** The first of the places that were left out takes the place of what stood for them. */
  async #unfold({ chat, lines }: HitGroup): Promise<void> {
    const before = this.#answer;
    let fault: string | null = null;
    const hits = await this.host.searchChat(this.#listed, chat).catch((error: unknown) => {
      fault = reason(error);
      return null;
    });
    if (before !== this.#answer) return;
    this.fault = fault;
    if (!hits) return;
    const chats = before.chats.map((found) =>
      found.chat === chat ? { ...found, hits, count: hits.length } : found,
    );
    this.#answer = { ...before, chats };
    const wasActive = this.active === `more-${chat}`;
    this.#arrange();
    if (!wasActive) return;
    const known = lines.map((line) => hitKey(chat, line));
    const first = this.rows.find(
      (row) => row.type === "hit" && row.group.chat === chat && !known.includes(row.key),
    );
    this.active = first?.key ?? this.active;
  }

  #go(to: (at: number, count: number) => number): void {
    const { rows } = this;
    if (rows.length === 0) return;
    const at = rows.findIndex(({ key }) => key === this.active);
    this.active = rows[to(at, rows.length)]?.key ?? null;
  }
}

function hitKey(chat: number, line: HitLine): string {
  return `hit-${chat}-${line.message}`;
}

/** The words of a text, without the signs between them. */
const wordsOf = (text: string): string[] => fold(text).match(/[\p{L}\p{N}]+/gu) ?? [];

/** Whether each of the words begins a word of a text. */
function haveWords(text: string, words: string[]): boolean {
  const known = wordsOf(text);
  return words.every((word) => known.some((each) => each.startsWith(word)));
}
