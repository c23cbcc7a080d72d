import type { Failure } from "../host/host";

type Action = { label: string; run: () => void };

export type Notice = {
  id: number;
  text: string;
  tone: "plain" | "error";
  action?: Action;
  /** Leads to what the notice is about. */
  look?: Action | undefined;
  /** It stays until the person dismisses it. */
  stays?: boolean;
};

const LIFE_MS = 8000;

/** Short messages at the edge of the window that leave by themselves. */
export class Notices {
  list = $state.raw<Notice[]>([]);
  #next = 1;

  /** `stays`: it is a report, to be read in a person's own time. */
  show(text: string, action?: Notice["action"], stays = false): void {
    this.#add({ text, tone: "plain", stays, ...(action && { action }) });
  }

  /** Takes the last change back. */
  undo: () => void = () => undefined;
  /** Makes the change again that was undone last. */
  redo: () => void = () => undefined;

  /** Says what was changed, as undo names it, and what else is to be known, and offers to take it back. */
  changed(what: string, more = "", stays = false, look?: Action): void {
    const said = what.charAt(0).toUpperCase() + what.slice(1);
    this.#offer(more === "" ? said : `${said}. ${more}`, "Undo", stays, look);
  }

  /** Names the result where there is one to name: what was removed is there again. */
  undone(what: string, restored: string | null): void {
    this.#offer(restored === null ? `Undone: ${what}` : `Restored ${restored}`, "Redo");
  }

  redone(what: string): void {
    this.#offer(`Redone: ${what}`, "Undo");
  }

  /** The notices of the changes before it go, and a report of one loses its button, which would be about this one. */
  #offer(text: string, label: "Undo" | "Redo", stays = false, look?: Action): void {
    this.list = this.list.flatMap(({ action, ...notice }) => {
      if (!action) return [notice];
      if (action.label !== "Undo" && action.label !== "Redo") return [{ ...notice, action }];
      return notice.stays ? [{ ...notice, look: undefined }] : [];
    });
    const run = (): void => (label === "Undo" ? this.undo() : this.redo());
    this.#add({ text, tone: "plain", stays, action: { label, run }, look });
  }

  /** Gets every failure first; true when it is shown elsewhere and needs no notice. */
  onfail: (error: Failure) => boolean = () => false;

  fail(error: Failure): void {
    if (this.onfail(error)) return;
    this.#add({ text: error.message, tone: "error" });
  }

  /** What a person has to know, whenever they look: it stays until they dismiss it. */
  warn(text: string): void {
    if (this.list.some((each) => each.stays && each.text === text)) return;
    this.#add({ text, tone: "error", stays: true });
  }

  dismiss(id: number): void {
    this.list = this.list.filter((notice) => notice.id !== id);
  }

  /** The result of a request, or null after its failure was shown. */
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

/** What a rejected request says. */
export function reason(error: unknown): string {
  return wireError(error).message;
}

function wireError(error: unknown): Failure {
  if (typeof error === "object" && error !== null && "code" in error && "message" in error) {
    return error as Failure;
  }
  return { code: "other", message: String(error) };
}
