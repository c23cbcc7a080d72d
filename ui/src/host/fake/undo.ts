import type { Undone } from "../host";

/** Takes a change back, and returns how it is made again. */
export type Revert = () => Revert;

/** What was changed and undone, as the real host keeps it. */
export class FakeUndo {
  #done: (Undone & { revert: Revert })[] = [];
  #undone: (Undone & { revert: Revert })[] = [];

  record(label: string, chat: number | null, revert: Revert): void {
    this.#undone = [];
    this.#done.push({ label, chat, revert });
  }

  undo(): Undone | null {
    return move(this.#done, this.#undone);
  }

  redo(): Undone | null {
    return move(this.#undone, this.#done);
  }
}

function move(
  from: (Undone & { revert: Revert })[],
  to: (Undone & { revert: Revert })[],
): Undone | null {
  const change = from.pop();
  if (!change) return null;
  const { label, chat, revert } = change;
  to.push({ label, chat, revert: revert() });
  return { label, chat };
}
