import { count } from "../text/figures";
import { literal } from "../text/query";
import { ShownText } from "../text/shown";
import type { Conversation } from "./conversation.svelte";
import type { Entry } from "./entry.svelte";

/** So long the messages are read without a pause. */
const SLICE_MS = 8;
/** How soon an answer that grows is counted again. */
const UPDATE_MS = 300;

/** A match: the message, and which of its matches it is, from 0; the first of them are in its thoughts. */
export type Match = { entry: number; nth: number; inThoughts: number };

/**
 * Finds words in the open chat: in every message of the shown branch as it is shown, drawn or not. Thoughts count, as
 * in the search over all chats, and are unfolded where a match in them is gone to.
 */
export class Find {
  shown = $state(false);
  query = $state("");
  focusRequests = $state(0);
  /** How many matches there are, and the place of the current one among them, from 1; 0: there is none. */
  total = $state(0);
  at = $state(0);
  searching = $state(false);
  current = $state.raw<Match | null>(null);
  /** Counts the matches that were gone to. */
  moves = $state(0);
  /** What is said of what the person did last. */
  spoken = $state("");
  /** The message at which the view stands. */
  top: () => number | null = () => null;
  #texts = new WeakMap<Entry, ShownText>();
  #counts: number[] = [];
  #run = 0;
  #due: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly conversation: Conversation) {}

  readonly pattern = $derived(literal(this.query));
  readonly words = $derived.by(() => {
    if (!this.pattern) return "";
    if (this.searching) return "Searching…";
    if (this.total === 0) return "Not found";
    return this.at === 0
      ? `${count(this.total)} found`
      : `${count(this.at)} of ${count(this.total)}`;
  });

  /** Opens the find bar, or goes back to it. */
  open(): void {
    this.shown = true;
    this.focusRequests += 1;
  }

  close(): void {
    this.#run += 1;
    clearTimeout(this.#due);
    this.#due = undefined;
    this.shown = false;
    this.current = null;
    this.searching = false;
    this.spoken = "";
    this.#counts = [];
    this.#publish();
  }

  /** Finds other words, and goes to the first of them from here on. */
  ask(query: string): void {
    const { pattern, current } = this;
    const entry = this.conversation.entries.find(({ id }) => id === current?.entry);
    const text = entry && this.#texts.get(entry);
    const offset = text && pattern && current ? text.offsetOf(pattern, current.nth) : 0;
    this.query = query;
    this.current = null;
    void this.#search({ entry: entry?.id ?? this.top(), offset });
  }

  /** Finds the same words again, where the messages are others; goes nowhere. */
  again(): Promise<void> {
    return this.#search(null);
  }

  /** An answer grows: counts it again in a moment. */
  grown(): void {
    this.#due ??= setTimeout(() => {
      this.#due = undefined;
      this.#recount();
    }, UPDATE_MS);
  }

  /** Goes to the match before or after the current one, and round at the ends. */
  step(step: 1 | -1): void {
    if (!this.shown) {
      this.open();
      return;
    }
    const { entries } = this.conversation;
    const { current } = this;
    const count = entries.length;
    const wanted = current?.entry ?? this.top();
    let at = Math.max(
      0,
      entries.findIndex(({ id }) => id === wanted),
    );
    let nth = current ? current.nth + step : step > 0 ? 0 : -1;
    for (let tries = 0; tries <= count; tries++) {
      const entry = entries[at];
      if (entry && nth >= 0 && nth < (this.#counts[at] ?? 0)) {
        this.#go(entry, nth);
        this.#publish();
        this.#say();
        return;
      }
      at = (at + step + count) % count;
      nth = step > 0 ? 0 : (this.#counts[at] ?? 0) - 1;
    }
  }

  #textOf(entry: Entry): ShownText {
    let text = this.#texts.get(entry);
    if (!text) this.#texts.set(entry, (text = new ShownText()));
    return text;
  }

  /**
   * Counts the matches, in slices, so that the page stays alive; `from`: where the first match to go to is looked for.
   */
  async #search(from: { entry: number | null; offset: number } | null): Promise<void> {
    const run = ++this.#run;
    const { pattern } = this;
    const { entries, editing } = this.conversation;
    const count = entries.length;
    const first = Math.max(
      0,
      entries.findIndex(({ id }) => id === from?.entry),
    );
    this.#counts = new Array<number>(count).fill(0);
    if (!pattern) {
      this.searching = false;
      this.current = null;
      this.#publish();
      this.spoken = "";
      return;
    }
    this.searching = true;
    let end = performance.now() + SLICE_MS;
    const isLate = (): boolean => performance.now() >= end;
    /** Lets the page live; false where something else is looked for meanwhile. */
    const pause = async (): Promise<boolean> => {
      await new Promise((resolve) => setTimeout(resolve));
      end = performance.now() + SLICE_MS;
      return run === this.#run;
    };
    let going = from !== null;
    for (let step = 0; step < count; step++) {
      const at = (first + step) % count;
      const entry = entries[at];
      // What is being edited is in a field of its own.
      if (!entry || entry.id === editing) continue;
      const text = this.#textOf(entry);
      while (!text.read(entry)) if (isLate() && !(await pause())) return;
      const matches = text.count(pattern);
      this.#counts[at] = matches;
      const nth = step === 0 && from ? text.countBefore(pattern, from.offset) : 0;
      if (going && nth < matches) {
        going = false;
        // What is drawn there takes a task of its own.
        if (!(await pause())) return;
        this.#go(entry, nth);
        if (!(await pause())) return;
      }
      if (isLate() && !(await pause())) return;
    }
    const start = entries[first];
    if (going && start && (this.#counts[first] ?? 0) > 0) this.#go(start, 0);
    this.searching = false;
    this.#publish();
    if (from) this.#say();
  }

  /** Counts the last message again, which is the one that can grow. */
  #recount(): void {
    const { entries, editing } = this.conversation;
    const entry = entries.at(-1);
    const { pattern } = this;
    if (this.searching) {
      this.grown();
      return;
    }
    if (!entry || !pattern || entry.id === editing) return;
    const text = this.#textOf(entry);
    if (!text.read(entry)) {
      // A long answer that has ended is read again, a window at a time.
      void this.again();
      return;
    }
    this.#counts[entries.length - 1] = text.count(pattern);
    this.#publish();
  }

  #go(entry: Entry, nth: number): void {
    const { pattern } = this;
    if (!pattern) return;
    const inThoughts = this.#textOf(entry).countThoughts(pattern);
    entry.unfold(nth < inThoughts ? "thinking" : "whole");
    this.current = { entry: entry.id, nth, inThoughts };
    this.moves += 1;
  }

  #publish(): void {
    const { entries } = this.conversation;
    const { current } = this;
    const at = current ? entries.findIndex(({ id }) => id === current.entry) : -1;
    if (current && current.nth >= (this.#counts[at] ?? 0)) this.current = null;
    let before = 0;
    let total = 0;
    for (const [place, count] of this.#counts.entries()) {
      if (place < at) before += count;
      total += count;
    }
    this.total = total;
    this.at = this.current ? before + this.current.nth + 1 : 0;
  }

  #say(): void {
    this.spoken = this.words;
  }
}
