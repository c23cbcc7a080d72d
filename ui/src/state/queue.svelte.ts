import type { Host, QueuedMessage } from "../host/host";
import type { Notices } from "./notices.svelte";

/** Messages that wait until the answer before them is done, in every chat. The host keeps them. */
export class Queue {
  /** Comes when the host has what is here. */
  saved: Promise<unknown> = Promise.resolve();
  #lists = $state.raw<ReadonlyMap<number, QueuedMessage[]>>(new Map());

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Of this chat, the first to be sent first. */
  of(chat: number | null): QueuedMessage[] {
    return (chat === null ? undefined : this.#lists.get(chat)) ?? [];
  }

  /** What the host says of a chat; what is known here already is newer. */
  take(chat: number, list: QueuedMessage[]): void {
    if (!this.#lists.has(chat)) this.#put(chat, list);
  }

  /** False where it was not saved, and does not wait. */
  async add(chat: number, message: QueuedMessage): Promise<boolean> {
    const list = [...this.of(chat), message];
    this.#put(chat, list);
    if (await this.#save(chat, list)) return true;
    this.#put(
      chat,
      this.of(chat).filter((each) => each !== message),
    );
    return false;
  }

  remove(chat: number, message: QueuedMessage): void {
    const list = this.of(chat).filter((each) => each !== message);
    this.#put(chat, list);
    void this.#save(chat, list);
  }

  /** The host has sent it. */
  sent(chat: number, message: QueuedMessage): void {
    this.#put(
      chat,
      this.of(chat).filter((each) => each !== message),
    );
  }

  #put(chat: number, list: QueuedMessage[]): void {
    this.#lists = new Map(this.#lists).set(chat, list);
  }

  /** One after the other: the host may take up requests in another order. */
  #save(chat: number, list: QueuedMessage[]): Promise<boolean> {
    const save = async (): Promise<boolean> => {
      const saved = this.host.saveQueue(chat, list).then(() => true);
      return (await this.notices.guard(saved)) !== null;
    };
    const result = this.saved.then(save);
    this.saved = result;
    return result;
  }
}
