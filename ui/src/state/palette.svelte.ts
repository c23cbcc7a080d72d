import type { ChatSummary, Host, SearchAnswer } from "../host/host";
import { fold, places, terms } from "../text/query";
import { type Part, partsAt } from "../text/snippet";
import type { Chats } from "./chats.svelte";
import type { Conversation } from "./conversation.svelte";
import { hitGroup, type HitGroup, type HitLine, noteOn } from "./hits";
import type { Navigation } from "./navigation";
import { reason } from "./notices.svelte";

/** A command that can be run now. */
export type PaletteCommand = {
  name: string;
  /** Further search terms. */
  keywords: string;
  keys: string | undefined;
  slash: string | undefined;
  run: () => void;
};

/** A selectable row of the palette. Its `key` stays the same while results are added. */
export type PaletteRow = { key: string } & (
  | { type: "chat"; chat: ChatSummary }
  | { type: "command"; command: PaletteCommand; name: Part[] }
  | { type: "hit"; group: HitGroup; line: HitLine; first: boolean }
  | { type: "more"; group: HitGroup; count: number }
);

export type PaletteSection = { name: string; rows: PaletteRow[] };

/** Number of chats that are shown before a query. */
const RECENT = 8;
/** Limit of commands among other results. */
const FEW_COMMANDS = 5;
const NOTHING: SearchAnswer = { chats: [], more: false, indexing: false };
/** Rows per page, for PageUp and PageDown. */
const PAGE = 8;
/** Time that the commands wait for the chats, so that all results appear together. */
const COMMANDS_AFTER_MS = 150;

/**
 * Chats, messages and commands in one list. The list answers one query as a whole. Late results are
 * appended, so that no row moves under the pointer; results of an earlier query are dropped.
 */
export class Palette {
  shown = $state(false);
  query = $state("");
  sections = $state.raw<PaletteSection[]>([]);
  /** Key of the row that Enter runs. */
  active = $state<string | null>(null);
  /** Error of the search over chats. */
  fault = $state<string | null>(null);
  /** Query of the listed results, and whether they are complete. */
  #listed = $state("");
  #whole = $state(true);
  #answer = $state.raw(NOTHING);
  #looking = false;
  /** Set if Enter was pressed before there were results. */
  #chosen = false;
  #late: ReturnType<typeof setTimeout> | undefined;
  /** Commands that can be run. */
  commands: () => PaletteCommand[] = () => [];

  constructor(
    private readonly host: Host,
    private readonly chats: Chats,
    private readonly conversation: Conversation,
    private readonly navigation: Navigation,
  ) {}

  readonly rows = $derived(this.sections.flatMap(({ rows }) => rows));
  /** Note on omitted results. */
  readonly note = $derived(
    this.#listed === this.query && this.#whole ? noteOn(this.#answer) : null,
  );
  /** Announcement of the number of results. */
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

  /** Moves by `step` rows and wraps around at the ends. */
  step(step: 1 | -1): void {
    this.#go((at, count) => (at + step + count) % count);
  }

  /** Moves by a page, and stops at the ends. */
  page(step: 1 | -1): void {
    this.#go((at, count) => Math.min(Math.max(at + step * PAGE, 0), count - 1));
  }

  toEnd(end: "first" | "last"): void {
    this.#go((_, count) => (end === "first" ? 0 : count - 1));
  }

  /** Runs the active row, once the list matches the query. */
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
        void this.navigation.open(row.chat.id);
        break;
      case "command":
        row.command.run();
        break;
      case "hit":
        void this.navigation.open(row.group.chat, row.line.message, this.#listed, row.line.kind);
        break;
      default:
        row satisfies never;
    }
  }

  /** Runs one search at a time. While one runs, only the latest query is kept. */
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
    // For the same query the list only grows.
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

  /** Most recent chats without the open one, so that Enter returns to the previous chat. */
  #recent(): PaletteRow[] {
    const { chats, conversation } = this;
    const others = chats.listed.slice(0, RECENT + 1).filter(({ id }) => id !== conversation.chat);
    return others
      .slice(0, RECENT)
      .map((chat): PaletteRow => ({ key: `chat-${chat.id}`, type: "chat", chat }));
  }

  /** Matching commands: matches in the name come before matches in the keywords. */
  #commands(query: string): PaletteRow[] {
    const wanted = terms(query);
    const words = wordsOf(query);
    // Punctuation alone matches no command.
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

  /** Lists all matches in a chat. The first new one becomes active in place of the "more" row. */
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

/** Words of a text, without punctuation. */
const wordsOf = (text: string): string[] => fold(text).match(/[\p{L}\p{N}]+/gu) ?? [];

/** Checks that each of the words is the prefix of a word in the text. */
function haveWords(text: string, words: string[]): boolean {
  const known = wordsOf(text);
  return words.every((word) => known.some((each) => each.startsWith(word)));
}
