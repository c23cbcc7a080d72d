import type { Host, QueuedMessage } from "../host/host";
import type { Notices } from "./notices.svelte";
import { Sequence } from "./sequence";

/** Messages that wait until the answer before them is done, in every chat. The host keeps them. */
export class Queue {
  readonly #requests = new Sequence();
  /** Chats whose first message is about to be sent. */
  readonly #sending = new Set<number>();
  /** Chats whose queue the host has refused to keep. */
  readonly #unsaved = new Set<number>();
  #lists = $state.raw<ReadonlyMap<number, QueuedMessage[]>>(new Map());

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Of this chat, the first to be sent first. */
  of(chat: number | null): QueuedMessage[] {
    return (chat === null ? undefined : this.#lists.get(chat)) ?? [];
  }

  /** Messages wait in this chat, and the first of them is about to be sent. */
  isMoving(chat: number): boolean {
    return this.#sending.has(chat) && this.of(chat).length > 0;
  }

  /** What the host says of a chat; what is known here already is newer. */
  take(chat: number, list: QueuedMessage[]): void {
    if (!this.#lists.has(chat)) this.#put(chat, list);
  }

  /** These chats were removed: should one come back, the host knows what waits in it, unless it has refused that. */
  forget(chats: number[]): void {
    const gone = new Set(chats.filter((chat) => !this.#unsaved.has(chat)));
    this.#lists = new Map([...this.#lists].filter(([chat]) => !gone.has(chat)));
  }

  /** False where it was not saved, and does not wait. */
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
   * Has `request` send the first message; the host keeps the others from then on. It goes on waiting where it is refused.
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
      // A chat that was deleted meanwhile has its list at the host, for when it comes back.
      if (!sent && this.#lists.has(chat)) this.#put(chat, [first, ...this.of(chat)]);
    });
    this.#sending.delete(chat);
  }

  /** Saves once more what the host has refused. */
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
