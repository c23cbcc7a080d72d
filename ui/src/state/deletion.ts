import type { ChatSummary, DeletedMessage, Host } from "../host/host";
import type { Chats } from "./chats.svelte";
import type { Composer } from "./composer.svelte";
import type { Conversation } from "./conversation.svelte";
import type { CurrentChat } from "./current-chat.svelte";
import type { Entry } from "./entry.svelte";
import type { ChatList } from "./list.svelte";
import type { Navigation } from "./navigation";
import type { Notices } from "./notices.svelte";

/** State involved in a deletion. */
type Parts = {
  readonly chats: Chats;
  readonly composer: Composer;
  readonly conversation: Conversation;
  readonly current: CurrentChat;
  readonly list: ChatList;
  readonly navigation: Navigation;
  readonly notices: Notices;
};

/** Deletes chats, of which the open one is left first; deletes and restores messages. */
export class Deletion {
  /** Last chat that was removed while it was open. */
  removed: number | null = null;

  constructor(
    private readonly host: Host,
    private readonly parts: Parts,
  ) {}

  /** Moves chats to the bin. */
  async remove(chats: ChatSummary[]): Promise<void> {
    const { chat } = this.parts.conversation;
    if (this.#leave(chats)) this.removed = chat;
    await this.parts.chats.remove(chats);
  }

  /** Deletes chats of the bin permanently. */
  async deleteForGood(chats: ChatSummary[]): Promise<void> {
    this.#leave(chats);
    await this.parts.list.deleteForGood(chats);
  }

  /** Deletes a message and its descendants. */
  async deleteMessage(entry: Entry): Promise<void> {
    const { composer, conversation, notices } = this.parts;
    const { visit } = conversation;
    if (conversation.writing || !(await conversation.delete(entry))) return;
    if (visit.lasts) composer.focus();
    notices.changed(`deleted the ${entry.noun}`);
  }

  /** Restores a deleted message and its descendants, and shows it. */
  async restoreMessage({ id, chat }: DeletedMessage): Promise<void> {
    const { conversation, current, navigation, notices } = this.parts;
    const { visit } = conversation;
    const label = await notices.guard(this.host.restoreMessage(id));
    if (label === null) return;
    notices.changed(label);
    await Promise.all([current.refreshBin(), visit.lasts && navigation.open(chat, id)]);
  }

  /** Leaves the chat that is open or being opened. Returns false if it is none of these. */
  #leave(chats: ChatSummary[]): boolean {
    const { conversation, navigation } = this.parts;
    if (!chats.some(({ id }) => id === conversation.visit.chat)) return false;
    navigation.leave();
    return true;
  }
}
