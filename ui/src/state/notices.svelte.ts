import type { Failure } from "../host/host";

type Action = { label: string; run: () => void };

export type Notice = {
  id: number;
  text: string;
  tone: "plain" | "error";
  action?: Action;
  /** Leads to the subject of the notice. */
  look?: Action | undefined;
  /** Set if the notice stays until it is dismissed. */
  stays?: boolean;
};

/** Requests and reports of the notices to other parts. */
type Effects = {
  /** Undoes the last change. */
  undo: () => unknown;
  /** Redoes the last undone change. */
  redo: () => unknown;
  /** Receives every failure first. Returns true if no notice is needed. */
  onfail: (error: Failure) => boolean;
};

const LIFE_MS = 8000;

/** Short messages at the edge of the window that disappear after a while. */
export class Notices {
  list = $state.raw<Notice[]>([]);
  #next = 1;

  constructor(private readonly effects: Partial<Effects> = {}) {}

  /** `stays`: keeps a longer report until it is dismissed. */
  show(text: string, action?: Notice["action"], stays = false): void {
    this.#add({ text, tone: "plain", stays, ...(action && { action }) });
  }

  /** Reports a change, by its undo label, with an optional addition, and offers to undo it. */
  changed(what: string, more = "", stays = false, look?: Action): void {
    const said = what.charAt(0).toUpperCase() + what.slice(1);
    this.#offer(more === "" ? said : `${said}. ${more}`, "Undo", stays, look);
  }

  /** Reports an undo. Names the restored item, if there is one. */
  undone(what: string, restored: string | null): void {
    this.#offer(restored === null ? `Undone: ${what}` : `Restored ${restored}`, "Redo");
  }

  redone(what: string): void {
    this.#offer(`Redone: ${what}`, "Undo");
  }

  /**
   * Dismisses notices of earlier changes. A report that stays loses its button, which would undo
   * this change.
   */
  #offer(text: string, label: "Undo" | "Redo", stays = false, look?: Action): void {
    this.list = this.list.flatMap(({ action, ...notice }) => {
      if (!action) return [notice];
      if (action.label !== "Undo" && action.label !== "Redo") return [{ ...notice, action }];
      return notice.stays ? [{ ...notice, look: undefined }] : [];
    });
    const run = (): void => void (label === "Undo" ? this.effects.undo?.() : this.effects.redo?.());
    this.#add({ text, tone: "plain", stays, action: { label, run }, look });
  }

  fail(error: Failure): void {
    if (this.effects.onfail?.(error)) return;
    this.#add({ text: error.message, tone: "error" });
  }

  /** Shows a warning that stays until it is dismissed. */
  warn(text: string): void {
    if (this.list.some((each) => each.stays && each.text === text)) return;
    this.#add({ text, tone: "error", stays: true });
  }

  dismiss(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id);
  }

  /** Resolves to the result of a request, or to null after showing its error. */
  async guard<T>(request: Promise<T>): Promise<T | null> {
    try {
      return await request;
    } catch (error) {
      this.fail(wireError(error));
      return null;
    }
  }

  #add(notice: Omit<Notice, "id">): void {
    const id = this.#next++;
    const passing = this.list.filter((each) => !each.stays).slice(-2);
    const kept = this.list.filter((each) => each.stays || passing.includes(each));
    this.list = [...kept, { ...notice, id }];
    if (!notice.stays) setTimeout(() => this.dismiss(id), LIFE_MS);
  }
}

/** Message of a rejected request. */
export function reason(error: unknown): string {
  return wireError(error).message;
}

function wireError(error: unknown): Failure {
  if (typeof error === "object" && error !== null && "code" in error && "message" in error) {
    return error as Failure;
  }
  return { code: "other", message: String(error) };
}
