import type { ChatSummary, Host, PartKind } from "../host/host";
import type { Announcer } from "./announcer.svelte";
import type { Chats } from "./chats.svelte";
import type { Composer } from "./composer.svelte";
import type { Conversation } from "./conversation.svelte";
import type { CurrentChat } from "./current-chat.svelte";
import type { Entry } from "./entry.svelte";
import type { Find } from "./find.svelte";
import type { ChatList } from "./list.svelte";
import type { Notices } from "./notices.svelte";
import type { Presets } from "./presets.svelte";
import type { Queue } from "./queue.svelte";
import type { Search } from "./search.svelte";
import type { Thinking } from "./thinking.svelte";

/** State that changes with the open chat. */
type Parts = {
  readonly announcer: Announcer;
  readonly chats: Chats;
  readonly composer: Composer;
  readonly conversation: Conversation;
  readonly current: CurrentChat;
  readonly find: Find;
  readonly list: ChatList;
  readonly notices: Notices;
  readonly presets: Presets;
  readonly queue: Queue;
  readonly search: Search;
  readonly thinking: Thinking;
};

/** Opens and leaves chats, with everything around the conversation. */
export class Navigation {
  /** Temporary chats that are being saved under a new id. */
  readonly #keeping = new Set<number>();

  constructor(
    private readonly host: Host,
    private readonly parts: Parts,
  ) {}

  /** Opens a chat, at the part of this kind in `message` if a search for `query` led there. */
  async open(
    id: number,
    message: number | null = null,
    query = "",
    kind: PartKind = "text",
  ): Promise<void> {
    const { composer, conversation, presets, queue, search, thinking } = this.parts;
    if (id !== conversation.chat) this.#reset();
    search.opened = query === "" ? null : { chat: id, message };
    const draft = await conversation.open(id, message, query, kind);
    if (draft === null) return;
    composer.move(id, draft);
    queue.take(id, draft.queue);
    thinking.wanted = conversation.lastAnswer?.thinks ?? presets.thinking;
    composer.focus();
  }

  openNeighbour(step: 1 | -1): void {
    const { conversation, list } = this.parts;
    const chat = list.neighbour(conversation.visit.chat, step);
    if (chat) void this.open(chat.id);
  }

  newChat(): void {
    const { list } = this.parts;
    if (list.view !== "chats") void list.show("chats");
    this.leave();
  }

  /** Leaves the open chat for a new one, in the same view of the list. */
  leave(): void {
    this.parts.conversation.clear();
    this.#showNewChat();
  }

  /** Leaves the chat for an empty one, with a notice that leads back. */
  startOver(): void {
    const { current, notices } = this.parts;
    const { chat } = current;
    this.newChat();
    if (!chat?.title) return;
    const back = { label: "Go back", run: () => void this.open(chat.id) };
    notices.show(`“${chat.title}” stays in the list.`, back);
  }

  /** Starts a temporary chat, of which nothing is saved, drafts included. */
  async newTemporaryChat(): Promise<void> {
    const { conversation, notices } = this.parts;
    const { visit } = conversation;
    const view = await notices.guard(this.host.beginTemporaryChat());
    if (view && visit.lasts) await this.open(view.chat.id);
  }

  /** Saves a temporary chat, which gets a new id. */
  async keep(chat: ChatSummary): Promise<void> {
    const { composer, conversation, notices } = this.parts;
    this.#keeping.add(chat.id);
    const kept = await composer.rename(chat.id, () => notices.guard(this.host.keepChat(chat.id)));
    this.#keeping.delete(chat.id);
    if (!kept) return;
    notices.changed(`kept “${kept.title}”`);
    // Applies to any visit of the chat, because the temporary id no longer exists.
    if (conversation.visit.chat === chat.id) await this.open(kept.id);
  }

  /** Continues in a new chat that begins with a summary of this one. */
  async startWithSummary(): Promise<void> {
    const { chats, composer, conversation, search } = this.parts;
    if (conversation.chat === null || conversation.busy) return;
    const { visit } = conversation;
    const started = await conversation.startSummary();
    if (started === null) return;
    if (!visit.isAt(started)) {
      this.#leadTo(chats.find(started));
      return;
    }
    this.#reset();
    search.opened = null;
    composer.move(started);
    composer.focus();
  }

  /** Copies the branch up to a message to a new chat and opens it. */
  async fork(entry: Entry): Promise<void> {
    const { conversation, notices } = this.parts;
    const { visit } = conversation;
    const view = await notices.guard(this.host.forkChat(entry.id));
    if (!view) return;
    if (visit.lasts) await this.open(view.chat.id);
    else this.#leadTo(view.chat);
  }

  /** Discards chats that the host has removed, and leaves the open one if it is among them. */
  lose(removed: number[]): void {
    const { composer, conversation, queue } = this.parts;
    const gone = removed.filter((id) => !this.#keeping.has(id));
    if (conversation.lose(gone)) this.#showNewChat();
    composer.forgetDrafts(gone);
    queue.forget(removed);
  }

  /** Resets everything around the conversation for a new chat that is already shown. */
  #showNewChat(): void {
    const { composer, presets, search, thinking } = this.parts;
    this.#reset();
    search.opened = null;
    composer.move(null);
    thinking.wanted = presets.thinking;
    composer.focus();
  }

  /** Resets what another chat does not take over. */
  #reset(): void {
    const { announcer, current, find } = this.parts;
    current.renaming = false;
    announcer.clear();
    find.close();
  }

  /** Offers to open a new chat that the user has moved on from. */
  #leadTo(chat: ChatSummary | undefined): void {
    if (!chat) return;
    const open = { label: "Open", run: () => void this.open(chat.id) };
    this.parts.notices.show(`“${chat.title}” is in the list.`, open);
  }
}
