import { textOf } from "../parts";
import type { ChatSummary, ChatView, DeletedMessage, Folder } from "../host";
import { FakeDataHost } from "./data";
import { type FakeChat, Library } from "./library";
import { refuse } from "./models";
import { type Revert, showing } from "./undo";

const BIN_SECONDS = 30 * 24 * 3600;
/** First id of temporary chats. */
const FIRST_TEMPORARY = 2 ** 40;

/** Chats of the scripted host and their order. Each change can be undone, as in the real host. */
export abstract class FakeOrderHost extends FakeDataHost {
  abstract readonly library: Library;
  #folders: Folder[] = [];
  #nextFolder = 1;

  abstract stop(id: number): Promise<null>;
  protected abstract view(chat: FakeChat): ChatView;

  protected now(): number {
    return Math.floor(Date.now() / 1000);
  }

  protected get folders(): Folder[] {
    return this.#folders;
  }

  /** Chat that exists and is not deleted. */
  protected open(id: number | null): FakeChat | undefined {
    const chat = id === null ? undefined : this.library.chats.get(id);
    return chat && !isDeleted(chat) ? chat : undefined;
  }

  /** Listed chats, as the real host sends them. */
  protected listed(): ChatSummary[] {
    return [...this.library.chats.values()].filter((chat) => !isDeleted(chat)).map(summaryOf);
  }

  renameChat(id: number, title: string): Promise<ChatSummary> {
    const chat = this.open(id);
    if (!chat) return noChat();
    const name = title.trim();
    if (name === "") return refuse("other", "A title cannot be empty.");
    if (name.length > 200) return refuse("other", tooLong("A title", 200, name));
    this.record(`renamed “${chat.summary.title}”`, id, this.#retitle(chat, name));
    return this.reply(chat.summary);
  }

  #retitle(chat: FakeChat, title: string): Revert {
    const before = chat.summary.title;
    chat.summary = { ...chat.summary, title };
    this.emit({ type: "chatChanged", chat: chat.summary });
    return () => this.#retitle(chat, before);
  }

  pinChats(ids: number[], pinned: boolean): Promise<string> {
    return this.#change(ids, pinned ? "pinned" : "unpinned", "", { pinned });
  }

  archiveChats(ids: number[], archived: boolean): Promise<string> {
    return this.#change(ids, archived ? "archived" : "unarchived", "", { archived });
  }

  moveChats(ids: number[], folder: number | null): Promise<string> {
    const found = this.#folders.find(({ id }) => id === folder);
    if (folder !== null && !found) return noFolder();
    return this.#change(ids, "moved", found ? ` to “${found.name}”` : " out of folders", {
      folder,
    });
  }

  deleteChats(ids: number[]): Promise<string> {
    return this.#change(ids, "deleted", "", { purgeAt: this.now() + BIN_SECONDS });
  }

  restoreChats(ids: number[]): Promise<string> {
    return this.#change(ids, "restored", "", { purgeAt: null });
  }

  bin(): Promise<ChatSummary[]> {
    const all = [...this.library.chats.values()].filter(
      (chat) => isDeleted(chat) && !chat.summary.temporary,
    );
    return this.reply(all.map(summaryOf).reverse());
  }

  deleteForGood(ids: number[]): Promise<null> {
    this.calls.push(["deleteForGood", ids]);
    for (const id of ids) {
      const chat = this.library.chats.get(id);
      if (chat && isDeleted(chat)) this.library.chats.delete(id);
    }
    return Promise.resolve(null);
  }

  /** Deleted messages of existing chats, as in the real host. */
  deletedMessages(): Promise<DeletedMessage[]> {
    const gone = this.library.deleted.filter(
      ({ chat, message }) =>
        !isDeleted(chat) &&
        !chat.summary.temporary &&
        chat.messages.every(({ id }) => id !== message.id),
    );
    const deleted = gone.map(({ chat: { summary }, message, at }) => ({
      id: message.id,
      chat: summary.id,
      title: summary.title,
      text: textOf(message).slice(0, 200),
      deletedAt: at,
    }));
    return this.reply(deleted);
  }

  restoreMessage(id: number): Promise<string> {
    const found = this.library.deleted.find(({ message }) => message.id === id);
    if (!found) return refuse("other", "This message does not exist any more.");
    const { message } = found;
    const what = message.role === "user" ? `“${textOf(message).slice(0, 60)}”` : "an answer";
    const label = `restored ${what}`;
    this.record(label, found.chat.summary.id, this.library.putBack(found));
    return this.reply(label);
  }

  createFolder(name: string, chats: number[]): Promise<number> {
    const problem = this.#refusedName(name, null);
    if (problem) return refuse("other", problem);
    const folder = { id: this.#nextFolder++, name: name.trim(), collapsed: false };
    const revert = this.#setFolders([...this.#folders, folder]);
    const moved = chats.length > 0 ? this.#set(chats, { folder: folder.id }) : null;
    this.record(`created the folder “${folder.name}”`, null, both(revert, moved));
    return this.reply(folder.id);
  }

  renameFolder(id: number, name: string): Promise<null> {
    const folder = this.#folders.find((each) => each.id === id);
    const problem = this.#refusedName(name, id);
    if (!folder) return noFolder();
    if (problem) return refuse("other", problem);
    const renamed = this.#with({ ...folder, name: name.trim() });
    this.record(`renamed the folder “${folder.name}”`, null, this.#setFolders(renamed));
    return Promise.resolve(null);
  }

  deleteFolder(id: number): Promise<string> {
    const folder = this.#folders.find((each) => each.id === id);
    if (!folder) return noFolder();
    const chats = [...this.library.chats.values()].filter((chat) => chat.summary.folder === id);
    const ids = chats.map(({ summary }) => summary.id);
    const moved = ids.length > 0 ? this.#set(ids, { folder: null }) : null;
    const revert = this.#setFolders(this.#folders.filter((each) => each.id !== id));
    const label = `deleted the folder “${folder.name}”`;
    this.record(label, null, both(revert, moved));
    return this.reply(label);
  }

  moveFolder(id: number, to: number): Promise<null> {
    const folder = this.#folders.find((each) => each.id === id);
    if (!folder) return noFolder();
    const order = this.#folders.filter((each) => each.id !== id);
    order.splice(to, 0, folder);
    this.record(`moved the folder “${folder.name}”`, null, this.#setFolders(order));
    return Promise.resolve(null);
  }

  collapseFolder(id: number, collapsed: boolean): Promise<null> {
    const folder = this.#folders.find((each) => each.id === id);
    if (!folder) return noFolder();
    this.#setFolders(this.#with({ ...folder, collapsed }));
    return Promise.resolve(null);
  }

  beginTemporaryChat(): Promise<ChatView> {
    const unused = [...this.library.chats.values()].find(
      ({ summary, messages }) => summary.temporary && messages.length === 0,
    );
    const chat = unused ?? this.library.create("", this.now(), FIRST_TEMPORARY);
    this.emit({ type: "chatChanged", chat: chat.summary });
    return this.reply(this.view(chat));
  }

  keepChat(id: number): Promise<ChatSummary> {
    const chat = this.open(id);
    if (!chat) return noChat();
    if (chat.summary.title === "")
      return refuse("other", "There is nothing to keep in this chat yet.");
    const kept = this.library.create(chat.summary.title, chat.summary.createdAt);
    const { messages, leaf, draft } = chat;
    Object.assign(kept, { messages, leaf, draft });
    kept.summary = { ...kept.summary, updatedAt: chat.summary.updatedAt };
    this.record(`kept “${chat.summary.title}”`, kept.summary.id, this.#swap(chat, kept));
    return this.reply(kept.summary);
  }

  /** Replaces one chat by another. */
  #swap(from: FakeChat, to: FakeChat): Revert {
    from.summary = { ...from.summary, purgeAt: 1 };
    to.summary = { ...to.summary, purgeAt: null };
    this.library.chats.set(to.summary.id, to);
    this.library.chats.delete(from.summary.id);
    this.emit({ type: "chatsRemoved", chats: [from.summary.id] });
    this.emit({ type: "chatChanged", chat: to.summary });
    return showing(to.summary.id, () => this.#swap(to, from));
  }

  protected record(label: string, chat: number | null, revert: Revert): void {
    this.changes.record(label, chat, revert);
  }

  #change(
    ids: number[],
    verb: string,
    rest: string,
    change: Partial<ChatSummary>,
  ): Promise<string> {
    const found = ids.flatMap((id) => this.library.chats.get(id) ?? []);
    const [first] = found;
    if (!first) return noChat();
    if (!("purgeAt" in change) && found.some(({ summary }) => summary.temporary)) {
      return refuse(
        "other",
        "A temporary chat cannot be pinned, archived or put in a folder. Keep it first.",
      );
    }
    const named = ids.length === 1 ? `“${first.summary.title}”` : `${ids.length} chats`;
    const label = `${verb} ${named}${rest}`;
    this.record(label, ids.length === 1 ? (ids[0] ?? null) : null, this.#set(ids, change));
    return this.reply(label);
  }

  protected putIntoBin(ids: number[]): Revert {
    return this.#set(ids, { purgeAt: this.now() + BIN_SECONDS });
  }

  /** Removes a derived chat, which shows the original again. */
  protected takeDerived(chat: number, source: number): Revert {
    const bring = this.putIntoBin([chat]);
    return showing(source, () => {
      bring();
      return () => this.takeDerived(chat, source);
    });
  }

  #set(ids: number[], change: Partial<ChatSummary>): Revert {
    return this.#setAll(ids.map((id) => [id, change]));
  }

  #setAll(changes: [number, Partial<ChatSummary>][]): Revert {
    const found = changes.flatMap(([id, change]) => {
      const chat = this.library.chats.get(id);
      return chat ? [{ chat, change }] : [];
    });
    const before = found.map(({ chat: { summary }, change }): [number, Partial<ChatSummary>] => {
      const keys = Object.keys(change) as (keyof ChatSummary)[];
      return [summary.id, Object.fromEntries(keys.map((key) => [key, summary[key]]))];
    });
    for (const { chat, change } of found) chat.summary = { ...chat.summary, ...change };
    const chats = found.map(({ chat }) => chat);
    const gone = chats.filter(isDeleted).map(({ summary }) => summary.id);
    const there = chats.filter((chat) => !isDeleted(chat)).map(summaryOf);
    for (const id of gone) void this.stop(id);
    if (there.length > 0) this.emit({ type: "chatsChanged", chats: there });
    if (gone.length > 0) this.emit({ type: "chatsRemoved", chats: gone });
    return () => this.#setAll(before);
  }

  #with(changed: Folder): Folder[] {
    return this.#folders.map((folder) => (folder.id === changed.id ? changed : folder));
  }

  #setFolders(folders: Folder[]): Revert {
    const before = this.#folders;
    this.#folders = folders;
    this.emit({ type: "foldersChanged", folders });
    return () => this.#setFolders(before);
  }

  #refusedName(name: string, of: number | null): string | null {
    const wanted = name.trim();
    if (wanted === "") return "The name of a folder cannot be empty.";
    if (wanted.length > 100) return tooLong("The name of a folder", 100, wanted);
    const same = this.#folders.find(
      (folder) => folder.id !== of && folder.name.toLowerCase() === wanted.toLowerCase(),
    );
    return same ? `There is already a folder “${same.name}”.` : null;
  }
}

const isDeleted = ({ summary }: FakeChat): boolean => summary.purgeAt !== null;
const summaryOf = ({ summary }: FakeChat): ChatSummary => summary;

export const noChat = (): Promise<never> => refuse("other", "This chat does not exist any more.");
const noFolder = (): Promise<never> => refuse("other", "This folder does not exist any more.");

const tooLong = (what: string, most: number, text: string): string =>
  `${what} has at most ${most} characters; this one has ${text.length.toLocaleString("en")}.`;

/** Reverts two changes, the second one first. */
function both(first: Revert, second: Revert | null): Revert {
  if (!second) return first;
  return () => {
    const again = second();
    return both(again, first());
  };
}
