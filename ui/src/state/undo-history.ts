import type { Host, Undone } from "../host/host";
import type { Chats } from "./chats.svelte";
import type { Conversation } from "./conversation.svelte";
import type { CurrentChat } from "./current-chat.svelte";
import type { Deletion } from "./deletion";
import type { Navigation } from "./navigation";
import type { Notices } from "./notices.svelte";
import type { Preferences } from "./preferences.svelte";

/** State that an undo or redo may change. */
type Parts = {
  readonly chats: Chats;
  readonly conversation: Conversation;
  readonly current: CurrentChat;
  readonly deletion: Deletion;
  readonly navigation: Navigation;
  readonly notices: Notices;
  readonly preferences: Preferences;
  /** Saves pending changes. */
  flush: () => Promise<void>;
};

/** Undo and redo of the changes that the host has recorded. */
export class UndoHistory {
  constructor(
    private readonly host: Host,
    private readonly parts: Parts,
  ) {}

  /** Undoes the last change to a chat. */
  undo(): Promise<void> {
    return this.#move(
      () => this.host.undo(),
      ({ label, restored }) => this.parts.notices.undone(label, restored),
      "There is nothing to undo.",
    );
  }

  /** Redoes the last change that was undone. */
  redo(): Promise<void> {
    return this.#move(
      () => this.host.redo(),
      ({ label }) => this.parts.notices.redone(label),
      "There is nothing to redo.",
    );
  }

  async #move(
    request: () => Promise<Undone | null>,
    say: (change: Undone) => void,
    nothing: string,
  ): Promise<void> {
    const { chats, conversation, current, deletion, navigation, notices, preferences } = this.parts;
    const { visit, chat: open } = conversation;
    // The host undoes the most recent change.
    await this.parts.flush();
    const change = await notices.guard(request().then((change) => change ?? "none"));
    if (change === null) return;
    if (change === "none") {
      notices.show(nothing);
      return;
    }
    const { chat, settings } = change;
    if (settings) preferences.take(settings);
    void current.refreshBin();
    say(change);
    // The open chat may have been removed by the change, and another one restored in its place.
    const hasGone = visit.lasts && open !== null && conversation.chat === null;
    // It was open when it was removed, and no other chat is open now.
    const comesBack = chat === deletion.removed && open === null && visit.lasts;
    const isMeant = chat === conversation.visit.chat || hasGone || comesBack;
    if (chat !== null && isMeant && chats.find(chat)) await navigation.open(chat);
  }
}
