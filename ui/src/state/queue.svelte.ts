import type { Host, QueuedMessage } from "../host/host";
import type { Notices } from "./notices.svelte";
import { Sequence } from "./sequence";

/** Messages of every chat that wait for the answer before them. The host stores them. */
export class Queue {
  readonly #requests = new Sequence();
  /** Chats whose first queued message is being sent. */
  readonly #sending = new Set<number>();
  /** Chats whose queue the host has refused to save. */
  readonly #unsaved = new Set<number>();
  #lists = $state.raw<ReadonlyMap<number, QueuedMessage[]>>(new Map());

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Queue of this chat, next message first. */
  of(chat: number | null): QueuedMessage[] {
    return (chat === null ? undefined : this.#lists.get(chat)) ?? [];
  }

  /** Checks if the first queued message of this chat is being sent. */
  isMoving(chat: number): boolean {
    return this.#sending.has(chat) && this.of(chat).length > 0;
  }

  /** Takes over the host's queue of a chat, unless it is already known here, which is newer. */
  take(chat: number, list: QueuedMessage[]): void {
    if (!this.#lists.has(chat)) this.#put(chat, list);
  }

  /**
   * Drops the queues of removed chats that the host has saved, since it returns them if a chat is
   * restored.
   */
  forget(chats: number[]): void {
    const gone = new Set(chats.filter((chat) => !this.#unsaved.has(chat)));
    this.#lists = new Map([...this.#lists].filter(([chat]) => !gone.has(chat)));
  }

  /** Returns false if the message could not be saved and is not queued. */
  async add(chat: number, message: QueuedMessage): Promise<boolean> {
    this.#put(chat, [...this.of(chat), message]);
    if (await this.#save(chat)) return true;
    this.#drop(chat, message);
    return false;
  }

  remove(chat: number, message: QueuedMessage): void {
    this.#drop(chat, message);
    void this.#save(chat);
  }

  /**
   * Sends the first message by `request`, which stores the rest with the host. If it is refused,
   * the message stays in the queue.
   */
  async send(
    chat: number,
    request: (first: QueuedMessage, rest: QueuedMessage[]) => Promise<boolean>,
  ): Promise<void> {
    this.#sending.add(chat);
    await this.#requests.run(async () => {
      const [first, ...rest] = this.of(chat);
      if (!first) return;
      this.#put(chat, rest);
      const sent = await request(first, rest);
      // The host has the queue of a chat that was deleted meanwhile.
      if (!sent && this.#lists.has(chat)) this.#put(chat, [first, ...this.of(chat)]);
    });
    this.#sending.delete(chat);
  }

  /** Retries the queues that the host has refused. */
  resave(): void {
    for (const chat of this.#unsaved) void this.#save(chat);
  }

  #put(chat: number, list: QueuedMessage[]): void {
    this.#lists = new Map(this.#lists).set(chat, list);
  }

  #drop(chat: number, message: QueuedMessage): void {
    this.#put(
      chat,
      this.of(chat).filter((each) => each !== message),
    );
  }

  #save(chat: number): Promise<boolean> {
    return this.#requests.run(async () => {
      const saved = this.host.saveQueue(chat, this.of(chat)).then(() => true);
      const isSaved = (await this.notices.guard(saved)) !== null;
      if (isSaved) this.#unsaved.delete(chat);
      else this.#unsaved.add(chat);
      return isSaved;
    });
  }
}
