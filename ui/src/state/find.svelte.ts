import { count } from "../text/figures";
import { literal } from "../text/query";
import { ShownText } from "../text/shown";
import type { Conversation } from "./conversation.svelte";
import type { Entry } from "./entry.svelte";

/** Time slice for reading messages without yielding to the event loop. */
const SLICE_MS = 8;
/** Throttle interval for recounting a growing answer. */
const UPDATE_MS = 300;

/**
 * A match: its message and its index there, from 0; the part of the message, as an index in
 * `shownParts`, and the index in that part.
 */
export type Match = { entry: number; nth: number; part: number; nthInPart: number };

/**
 * Finds text in the open chat, in every message of the visible branch, rendered or not. Thinking,
 * calls of tools and their results are included, as in the search over all chats, and expanded when
 * the current match is in them.
 */
export class Find {
  shown = $state(false);
  query = $state("");
  focusRequests = $state(0);
  /** Number of matches, and the number of the current one, from 1; 0 if there is none. */
  total = $state(0);
  at = $state(0);
  searching = $state(false);
  current = $state.raw<Match | null>(null);
  /** Counts the moves to a match. */
  moves = $state(0);
  /** Announcement after the last action. */
  spoken = $state("");
  /** Message at the top of the viewport. */
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

  /** Opens the find bar, or focuses it. */
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

  /** Finds a new query, and goes to the first match from here on. */
  ask(query: string): void {
    const { pattern, current } = this;
    const entry = this.conversation.entries.find(({ id }) => id === current?.entry);
    const text = entry && this.#texts.get(entry);
    const offset = text && pattern && current ? text.offsetOf(pattern, current.nth) : 0;
    this.query = query;
    this.current = null;
    void this.#search({ entry: entry?.id ?? this.top(), offset });
  }

  /** Repeats the search after the messages have changed, without going to a match. */
  again(): Promise<void> {
    return this.#search(null);
  }

  /** Recounts a growing answer, throttled. */
  grown(): void {
    this.#due ??= setTimeout(() => {
      this.#due = undefined;
      this.#recount();
    }, UPDATE_MS);
  }

  /** Goes to the previous or next match, and wraps around at the ends. */
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
   * Counts the matches in time slices. `from`: position from which to look for the match to go to.
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
    /** Yields to the event loop. Returns false if another search has started meanwhile. */
    const pause = async (): Promise<boolean> => {
      await new Promise((resolve) => setTimeout(resolve));
      end = performance.now() + SLICE_MS;
      return run === this.#run;
    };
    let going = from !== null;
    for (let step = 0; step < count; step++) {
      const at = (first + step) % count;
      const entry = entries[at];
      // The text of a message that is being edited is in its own field.
      if (!entry || entry.id === editing) continue;
      const text = this.#textOf(entry);
      while (!text.read(entry)) if (isLate() && !(await pause())) return;
      const matches = text.count(pattern);
      this.#counts[at] = matches;
      const nth = step === 0 && from ? text.countBefore(pattern, from.offset) : 0;
      if (going && nth < matches) {
        going = false;
        // Rendering that message needs a task of its own.
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

  /** Recounts the last message, which is the only one that can grow. */
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
      // A long answer is reread in windows once it is complete.
      void this.again();
      return;
    }
    this.#counts[entries.length - 1] = text.count(pattern);
    this.#publish();
  }

  #go(entry: Entry, nth: number): void {
    const { pattern } = this;
    if (!pattern) return;
    const place = this.#textOf(entry).placeOf(pattern, nth);
    entry.unfold(place.part);
    this.current = { entry: entry.id, nth, ...place };
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
