import type { Attachment } from "svelte/attachments";
import type { Match } from "../state/find.svelte";
import { placesOf } from "../text/query";
import { live, paint, rangesIn } from "./marks";

/** Elements of a message that are searched separately, in the order of `ShownText`. */
const UNITS =
  ".thoughts:not(.folded) .piece, .tool-name, .tool-text .piece, .tool-whole, .answer .block, .bubble .piece";

/** Caption of code with the language name, which is not part of the message. */
const CAPTION = "figcaption";

/** Highlight names in `answer.css`. */
const OTHERS = "match";
const CURRENT = "current-match";

/** Limit of all highlights. The current message takes precedence. */
const MOST_MARKS = 5000;
/** Time slice for searching per frame. */
const SLICE_MS = 8;
/**
 * Minimum pause before searching a changed page again, and the largest share of the time spent on
 * it.
 */
const PAUSE_MS = 250;
const SHARE = 1 / 20;
/**
 * Lifetime of the cached list of units: while a long message is rendered, a match is looked up at
 * each frame.
 */
const LISTED_MS = 100;
const NONE_LISTED = { entry: -1, units: [], until: 0 };

/** Number of matches in a unit, and the ranges of the first ones. */
type Found = { count: number; ranges: StaticRange[] };

/** Highlights matches in the rendered messages, and caches the result of each unchanged unit. */
export class Matches {
  #log: HTMLElement | undefined;
  #pattern: RegExp | null = null;
  #current: Match | null = null;
  #found = new Map<Element, Found>();
  #stale = new Set<Element>();
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #cost = 0;
  #listed: { entry: number; units: readonly Element[]; until: number } = NONE_LISTED;

  /** Attached to the log while the find bar is open. */
  readonly attach: Attachment<HTMLElement> = (log) => {
    this.#log = log;
    const changes = new MutationObserver((records) => this.#changed(records));
    changes.observe(log, { childList: true, subtree: true, characterData: true });
    this.#begin();
    return () => {
      changes.disconnect();
      cancelAnimationFrame(this.#frame);
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#log = undefined;
      this.#found.clear();
      paint(OTHERS, []);
      paint(CURRENT, []);
    };
  };

  mark(pattern: RegExp | null, current: Match | null): void {
    this.#current = current;
    if (pattern === this.#pattern) {
      this.#paint();
      return;
    }
    this.#pattern = pattern;
    this.#begin();
  }

  /** Range of a match. Other parts may be collapsed or only partly rendered. */
  rangeOf({ entry, part, nthInPart }: Match): Range | undefined {
    const pattern = this.#pattern;
    if (!pattern) return undefined;
    let before = nthInPart;
    for (const unit of this.#unitsOf(entry)) {
      if (!unit.closest(`[data-part="${part}"]`)) continue;
      const { count, ranges } = this.#lookAt(unit, pattern);
      if (before < count) {
        const places = (text: string): [number, number][] => placesOf(text, pattern);
        const range = ranges[before] ?? rangesIn([unit], CAPTION, places, before, before + 1)[0];
        return range && live(range);
      }
      before -= count;
    }
    return undefined;
  }

  #unitsOf(entry: number): readonly Element[] {
    const now = performance.now();
    if (this.#listed.entry !== entry || now > this.#listed.until) {
      const units = this.#log?.querySelectorAll(`[data-message="${entry}"] :is(${UNITS})`) ?? [];
      this.#listed = { entry, units: [...units], until: now + LISTED_MS };
    }
    return this.#listed.units;
  }

  /** Searches all units again. */
  #begin(): void {
    this.#found.clear();
    this.#listed = NONE_LISTED;
    this.#stale = new Set(this.#log?.querySelectorAll(UNITS));
    this.#cost = 0;
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#work());
  }

  #changed(records: MutationRecord[]): void {
    for (const { target, addedNodes } of records) {
      const element = target instanceof Element ? target : target.parentElement;
      const unit = element?.closest(UNITS);
      if (unit) this.#expire(unit);
      else
        for (const node of addedNodes) {
          if (!(node instanceof Element)) continue;
          if (node.matches(UNITS)) this.#expire(node);
          for (const each of node.querySelectorAll(UNITS)) this.#expire(each);
        }
    }
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#cost = 0;
        // The change may have added units, and no other may follow.
        this.#listed = NONE_LISTED;
        this.#work();
      },
      Math.max(PAUSE_MS, this.#cost / SHARE),
    );
  }

  #expire(unit: Element): void {
    this.#found.delete(unit);
    this.#stale.add(unit);
  }

  #work(): void {
    const pattern = this.#pattern;
    const started = performance.now();
    for (const unit of this.#stale) {
      this.#stale.delete(unit);
      if (pattern && unit.isConnected) this.#lookAt(unit, pattern);
      if (performance.now() - started >= SLICE_MS) break;
    }
    if (this.#stale.size > 0) {
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.#work());
    } else this.#paint();
    this.#cost += performance.now() - started;
  }

  #lookAt(unit: Element, pattern: RegExp): Found {
    let found = this.#found.get(unit);
    if (found) return found;
    let count = 0;
    const ranges = rangesIn([unit], CAPTION, (text) => {
      const places = placesOf(text, pattern);
      count = places.length;
      return places;
    });
    found = { count, ranges };
    this.#found.set(unit, found);
    this.#stale.delete(unit);
    return found;
  }

  #paint(): void {
    const current = this.#current && this.rangeOf(this.#current);
    const others: StaticRange[] = [];
    const first = this.#current ? this.#unitsOf(this.#current.entry) : [];
    for (const unit of new Set([...first, ...this.#found.keys()])) {
      if (!unit.isConnected || !unit.matches(UNITS)) this.#found.delete(unit);
      else if (others.length < MOST_MARKS) others.push(...(this.#found.get(unit)?.ranges ?? []));
    }
    paint(OTHERS, others.slice(0, MOST_MARKS));
    paint(CURRENT, current ? [current] : [], 1);
  }
}
