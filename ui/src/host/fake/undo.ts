import type { Undone } from "../host";

/** Reverts a change, and returns the function that makes it again. */
export type Revert = {
  (): Revert;
  /** Chat to show afterwards; by default, that of the change. */
  shows?: number;
};

export function showing(chat: number, revert: () => Revert): Revert {
  return Object.assign(revert, { shows: chat });
}

type Change = { label: string; chat: number | null; revert: Revert };
type Moved = Omit<Undone, "settings">;

/** Undo and redo stacks, like those of the real host. */
export class FakeUndo {
  #done: Change[] = [];
  #undone: Change[] = [];

  record(label: string, chat: number | null, revert: Revert): void {
    this.#undone = [];
    this.#done.push({ label, chat, revert });
  }

  undo(): Moved | null {
    const moved = move(this.#done, this.#undone);
    const [, removed = null] = /^deleted (.*)$/u.exec(moved?.label ?? "") ?? [];
    return moved && { ...moved, restored: removed };
  }

  redo(): Moved | null {
    return move(this.#undone, this.#done);
  }
}

function move(from: Change[], to: Change[]): Moved | null {
  const change = from.pop();
  if (!change) return null;
  const { label, chat, revert } = change;
  const again = revert();
  to.push({ label, chat, revert: again });
  return { label, restored: null, chat: again.shows ?? chat };
}
