import type { Run } from "./runs";

/** Code to highlight, and the lengths of the pieces to split the result into. */
export type Job = { code: string; language: string; lengths: number[] };

/** Messages from the worker: it is ready, the runs of one piece, or the job is done. */
export type Reply = "ready" | "done" | { index: number; runs: Run[] };

/** Interface of a worker to the page. */
export type Port = { post(job: Job): void; end(): void };

/** Starts a worker that sends its replies to `onReply`. */
export type Start = (onReply: (reply: Reply | "failed") => void) => Port;

/** Outcome of a job: `late` after a timeout, `failed` if no worker could be started. */
export type Outcome = "done" | "late" | "failed";

type Waiting = Job & {
  onPiece: (index: number, runs: Run[]) => void;
  signal: AbortSignal | undefined;
  resolve: (outcome: Outcome) => void;
};

const DEADLINE_MS = 500;
/** Timeout for the start of a worker. */
const START_MS = 20_000;

/** Highlights code in a worker, one job after the other. A timeout terminates the worker. */
export class Highlighter {
  #queue: Waiting[] = [];
  #current: Waiting | undefined;
  #port: Port | undefined;
  #ready = false;
  #broken = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly start: Start) {}

  run(
    job: Job,
    onPiece: (index: number, runs: Run[]) => void,
    signal?: AbortSignal,
  ): Promise<Outcome> {
    return new Promise((resolve) => {
      this.#queue.push({ ...job, onPiece, signal, resolve });
      this.#next();
    });
  }

  #next(): void {
    if (this.#broken) {
      for (const { resolve } of this.#queue.splice(0)) resolve("failed");
      return;
    }
    if (this.#current || this.#queue.length === 0) return;
    if (!this.#port) this.#open();
    if (!this.#ready) return;
    let next = this.#queue.shift();
    while (next?.signal?.aborted) {
      next.resolve("failed");
      next = this.#queue.shift();
    }
    if (!next) return;
    this.#current = next;
    const { code, language, lengths } = next;
    this.#port?.post({ code, language, lengths });
    this.#timer = setTimeout(() => this.#close("late"), DEADLINE_MS);
  }

  #open(): void {
    try {
      const port = this.start((reply) => {
        if (this.#port === port) this.#onReply(reply);
      });
      this.#port = port;
      this.#timer = setTimeout(() => this.#fail(), START_MS);
    } catch {
      this.#fail();
    }
  }

  #onReply(reply: Reply | "failed"): void {
    if (reply === "failed" && !this.#ready) this.#fail();
    else if (reply === "failed") this.#close("failed");
    else if (reply === "ready") {
      clearTimeout(this.#timer);
      this.#ready = true;
      this.#next();
    } else if (reply === "done") this.#finish("done");
    else if (!this.#current?.signal?.aborted) this.#current?.onPiece(reply.index, reply.runs);
  }

  /** Terminates the worker with its job. The next job starts a new one. */
  #close(outcome: Outcome): void {
    this.#port?.end();
    this.#port = undefined;
    this.#ready = false;
    this.#finish(outcome);
  }

  #fail(): void {
    this.#broken = true;
    this.#close("failed");
  }

  #finish(outcome: Outcome): void {
    clearTimeout(this.#timer);
    const finished = this.#current;
    this.#current = undefined;
    finished?.resolve(outcome);
    this.#next();
  }
}
