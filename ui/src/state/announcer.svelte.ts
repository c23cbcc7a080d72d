import type { HostEvent, Message } from "../host/host";
import { textOf } from "../host/parts";
import { beforePair } from "../text/pieces";
import { plainText } from "../text/plain";
import { harmlessName } from "../text/tool-texts";
import { endWords } from "./endings";

/**
 * Complete sentences and lines. A full stop ends a sentence only before a space: 5.5 is a number.
 */
const SENTENCES = /^[\s\S]*(?:[.!?](?=\s)|\n)/u;

/**
 * Text that arrives within this time is announced together, so that none of it is overwritten
 * unheard.
 */
const GATHER_MS = 100;

/** Limit of the live region, in characters, since the browser lays out all of it at once. */
const LONGEST_SPOKEN = 2000;

/** Length, in characters, at which text is announced even without the end of a sentence. */
const LONGEST_PENDING = 500;

/** Announces the growing answer to screen readers, sentence by sentence. */
export class Announcer {
  /** Content of the polite live region. */
  spoken = $state("");
  #pending = "";
  #due: string[] = [];
  /** Calls whose question was announced. */
  #asked = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Announces the progress of the answer in the open chat. */
  receive(event: Extract<HostEvent, { type: "stage" | "delta" | "called" | "ended" }>): void {
    if (event.type === "stage" && event.stage.name === "thinking") this.say("Thinking");
    if (event.type === "delta" && textOf(event) !== "") this.append(textOf(event));
    if (event.type === "called") this.#announceCalls(event.message);
    if (event.type === "ended") this.finish(closing(event.message));
  }

  /** Announces a call that begins to wait for consent, once. */
  #announceCalls({ calls }: Message): void {
    const asking = calls.filter(({ status }) => status === "asks");
    for (const { id, tool } of asking)
      if (!this.#asked.has(id)) this.finish(`${harmlessName(tool.title)} asks to run`);
    this.#asked = new Set(asking.map(({ id }) => id));
  }

  say(text: string): void {
    this.#pending = "";
    this.#speak(text);
  }

  append(text: string): void {
    this.#pending += text;
    let end = beforeFormula(this.#pending, SENTENCES.exec(this.#pending)?.[0].length ?? 0);
    if (this.#pending.length - end > LONGEST_PENDING) {
      end = endOfWord(this.#pending, this.#pending.length);
    }
    if (end === 0) return;
    this.#speak(plainText(this.#pending.slice(0, end)));
    this.#pending = this.#pending.slice(end);
  }

  /** Announces the rest, then `closing`. */
  finish(closing: string): void {
    this.#speak(plainText(this.#pending));
    this.#speak(closing);
    this.#pending = "";
  }

  /** Drops pending announcements when another chat is opened. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#pending = "";
    this.#due = [];
    this.spoken = "";
  }

  #speak(words: string): void {
    // A paragraph break is empty when spoken, and must not replace text that is being read out.
    while (words !== "") {
      const isLong = words.length > LONGEST_PENDING;
      const end = isLong ? endOfWord(words, LONGEST_PENDING) : words.length;
      this.#due.push(words.slice(0, end).trimEnd());
      words = words.slice(end);
    }
    if (this.#due.length > 0) this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  #flush(): void {
    let count = 0;
    for (let length = 0; length < LONGEST_SPOKEN && count < this.#due.length; count++) {
      length += this.#due[count]?.length ?? 0;
    }
    this.spoken = this.#due.splice(0, count).join(" ");
    this.#timer = this.#due.length > 0 ? setTimeout(() => this.#flush(), GATHER_MS) : undefined;
  }
}

/** Announcement at the end of an answer. */
function closing(message: Message): string {
  const words = endWords(message) ?? "";
  return message.state === "failed" ? `${words} ${message.error?.message ?? ""}` : words;
}

/** End of the last word before `most`, or `most` itself within a longer word. */
function endOfWord(text: string, most: number): number {
  return text.lastIndexOf(" ", most - 1) + 1 || beforePair(text, most);
}

/** `end`, or the start of a display formula that is still open at `end`. */
function beforeFormula(text: string, end: number): number {
  const spoken = text.slice(0, end);
  for (const [open, close] of [
    ["$$", "$$"],
    ["\\[", "\\]"],
  ] as const) {
    for (let from = spoken.indexOf(open); from >= 0;) {
      const over = spoken.indexOf(close, from + 2);
      if (over < 0) return from;
      from = spoken.indexOf(open, over + 2);
    }
  }
  return end;
}
