import type { ChatSummary } from "../host/host";
import type { Chats } from "./chats.svelte";
import type { Conversation } from "./conversation.svelte";
import type { ChatList } from "./list.svelte";

/** The open chat as an entry of the list or of the bin, and the editing of its title. */
export class CurrentChat {
  /** Chat whose title is being edited in the header. */
  #renamed = $state<number | null>(null);

  constructor(
    private readonly conversation: Conversation,
    private readonly chats: Chats,
    private readonly list: ChatList,
  ) {}

  /** Undefined for a new chat. A chat of the bin is read-only. */
  readonly chat = $derived.by((): ChatSummary | undefined => {
    const { chat } = this.conversation;
    return this.chats.find(chat) ?? this.list.bin.find(({ id }) => id === chat);
  });
  readonly readOnly = $derived.by(() => (this.chat?.purgeAt ?? null) !== null);
  /** True if the chat has messages and is not in the bin. */
  readonly hasTitle = $derived.by(() => !!this.chat?.title && !this.readOnly);

  /** True while the title is edited in the header. */
  get renaming(): boolean {
    return this.#renamed !== null && this.#renamed === this.conversation.chat;
  }

  set renaming(renaming: boolean) {
    this.#renamed = renaming ? this.conversation.chat : null;
  }

  /** Reloads the bin if it, or a chat in it, is shown. */
  async refreshBin(): Promise<void> {
    if (this.list.view === "bin" || this.readOnly) await this.list.refreshBin();
  }
}
