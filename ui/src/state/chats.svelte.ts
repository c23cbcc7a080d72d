import type { ChatSummary, Folder, Host } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

/**
 * All chats that are not deleted, newest first. Only events from the host update a chat, in their
 * order: the response to a request may arrive after a newer event.
 */
export class Chats {
  list = $state.raw<ChatSummary[]>([]);
  /** Chats in the list: a temporary chat has no title before its first message. */
  readonly listed = $derived(
    this.list.filter(({ temporary, title }) => !temporary || title !== ""),
  );
  readonly #byId = $derived(new Map(this.list.map((chat) => [chat.id, chat])));

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  take(chats: ChatSummary[]): void {
    this.list = chats.map(plain).sort(newestFirst);
  }

  put(...chats: ChatSummary[]): void {
    const changed = new Set(chats.map(({ id }) => id));
    const others = this.list.filter(({ id }) => !changed.has(id));
    this.list = merged(others, chats.map(plain).sort(newestFirst));
  }

  drop(ids: number[]): void {
    const dropped = new Set(ids);
    this.list = this.list.filter(({ id }) => !dropped.has(id));
  }

  find(id: number | null): ChatSummary | undefined {
    return id === null ? undefined : this.#byId.get(id);
  }

  /** Returns false if the host refuses the title. */
  async rename(id: number, title: string): Promise<boolean> {
    const trimmed = title.trim();
    if (trimmed === "" || trimmed === this.find(id)?.title) return true;
    return (await this.notices.guard(this.host.renameChat(id, trimmed))) !== null;
  }

  /** Needs no notice: the move to the top is visible. */
  async pin(chats: ChatSummary[], pinned: boolean): Promise<void> {
    await this.notices.guard(this.host.pinChats(ids(chats), pinned));
  }

  archive(chats: ChatSummary[], archived: boolean): Promise<void> {
    return this.#change(this.host.archiveChats(ids(chats), archived));
  }

  /** Moves chats to `folder`, or out of their folders if null. */
  move(chats: ChatSummary[], folder: Folder | null): Promise<void> {
    const stays = folder && chats.every(({ pinned }) => pinned);
    const where = chats.length === 1 ? "It is still under Pinned." : "They are still under Pinned.";
    return this.#change(
      this.host.moveChats(ids(chats), folder?.id ?? null),
      stays ? where : undefined,
    );
  }

  remove(chats: ChatSummary[]): Promise<void> {
    return this.#change(this.host.deleteChats(ids(chats)));
  }

  restore(chats: ChatSummary[]): Promise<void> {
    return this.#change(this.host.restoreChats(ids(chats)));
  }

  async #change(request: Promise<string>, more?: string): Promise<void> {
    const done = await this.notices.guard(request);
    if (done !== null) this.notices.changed(done, more);
  }
}

const ids = (chats: ChatSummary[]): number[] => chats.map(({ id }) => id);

/** A chat whose title has no bidi controls, so that it reads as it is written. */
export const plain = (chat: ChatSummary): ChatSummary => ({
  ...chat,
  title: withoutBidiControls(chat.title),
});

const newestFirst = (a: ChatSummary, b: ChatSummary): number =>
  b.updatedAt - a.updatedAt || b.id - a.id;

/** Merges two ordered lists. */
function merged(some: ChatSummary[], others: ChatSummary[]): ChatSummary[] {
  const all: ChatSummary[] = [];
  let at = 0;
  for (const other of others) {
    for (let one = some[at]; one && newestFirst(one, other) < 0; one = some[++at]) all.push(one);
    all.push(other);
  }
  return all.concat(some.slice(at));
}
