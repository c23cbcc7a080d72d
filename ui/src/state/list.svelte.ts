import type { ChatSummary, DeletedMessage, Host } from "../host/host";
import { type Chats, plain } from "./chats.svelte";
import type { Folders } from "./folders.svelte";
import type { Notices } from "./notices.svelte";
import { chatKey, folderKey, plainRows, type Row, rowsOf } from "./rows";

/** What the list in the sidebar shows. */
export type ListView = "chats" | "archive" | "bin";

/** What the list asks about: where chats are to be moved, and whether they are to be deleted for good. */
export type ListQuestion = { about: "folder" | "deletion"; chats: ChatSummary[] };

/** The list in the sidebar: its lines, the one that has the cursor, and those that are selected. */
export class ChatList {
  view = $state<ListView>("chats");
  /** Deleted chats, that deleted last first, as they were when the bin was last looked at. */
  bin = $state.raw<ChatSummary[]>([]);
  /** The bin was looked at. */
  binKnown = $state(false);
  /** Deleted messages of other chats, in the same way. */
  deletedMessages = $state.raw<DeletedMessage[]>([]);
  question = $state.raw<ListQuestion | null>(null);
  /** The line whose name is being edited. */
  renaming = $state<string | null>(null);
  /** The line at which keys begin: the one that was last focused or clicked. */
  cursor = $state<string | null>(null);
  #selected = $state.raw<ReadonlySet<string>>(new Set());
  /** Where a range of selected lines begins. */
  #anchor: string | null = null;
  #refreshes = 0;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly chats: Chats,
    private readonly folders: Folders,
  ) {}

  readonly archived = $derived.by(() => this.chats.list.filter((chat) => chat.archived));
  readonly rows: Row[] = $derived.by(() => {
    switch (this.view) {
      case "chats":
        return rowsOf(this.chats.listed, this.folders.list, new Date());
      case "archive":
        return plainRows(this.archived);
      case "bin":
        return plainRows(this.bin);
    }
  });
  readonly #places = $derived(new Map(this.rows.map(({ key }, at) => [key, at])));
  /** The selected chats that are still in the list, in its order. */
  readonly selection = $derived.by(() =>
    this.#selected.size === 0
      ? []
      : this.rows.flatMap((row) =>
          row.kind === "chat" && this.#selected.has(row.key) ? [row.chat] : [],
        ),
  );

  /** Shows a view, with nothing selected. */
  async show(view: ListView): Promise<void> {
    this.clear();
    this.cursor = null;
    this.view = view;
    if (view === "bin") await this.refreshBin();
  }

  async refreshBin(): Promise<void> {
    const refresh = ++this.#refreshes;
    const both = Promise.all([this.host.bin(), this.host.deletedMessages()]);
    const bin = await this.notices.guard(both);
    // One that was begun later knows more.
    if (!bin || refresh !== this.#refreshes) return;
    this.binKnown = true;
    this.bin = bin[0].map(plain);
    this.deletedMessages = bin[1];
  }

  async deleteForGood(chats: ChatSummary[]): Promise<void> {
    const ids = chats.map(({ id }) => id);
    await this.notices.guard(this.host.deleteForGood(ids));
    await this.refreshBin();
  }

  /** Creates a folder whose name is then edited in its place. */
  async newFolder(): Promise<void> {
    const { renaming } = this;
    await this.show("chats");
    const folder = await this.folders.create(this.folders.freeName(), []);
    // Meanwhile the person may have begun to rename something else, or looks at another list.
    const isWatched = this.view === "chats" && this.renaming === renaming;
    if (folder !== null && isWatched) this.renaming = folderKey(folder);
  }

  placeOf(key: string | null): number {
    return (key === null ? undefined : this.#places.get(key)) ?? -1;
  }

  /** The chat `step` places below `id` in the list, or the first when none is open. */
  neighbour(id: number | null, step: 1 | -1): ChatSummary | undefined {
    const ordered = this.rows.flatMap((row) => (row.kind === "chat" ? [row.chat] : []));
    const at = ordered.findIndex((chat) => chat.id === id);
    if (at < 0) return step === 1 ? ordered[0] : undefined;
    return ordered[at + step];
  }

  /** The line to which a key leads from the cursor: groups' names are passed over. */
  next(step: number): Row | undefined {
    const from = this.placeOf(this.cursor);
    const way = Math.sign(step);
    let found: Row | undefined;
    for (let at = from + way, left = Math.abs(step); left > 0 && this.rows[at]; at += way) {
      if (this.rows[at]?.kind === "group") continue;
      found = this.rows[at];
      left -= 1;
    }
    return found;
  }

  isSelected(key: string): boolean {
    return this.#selected.has(key);
  }

  /** Selects a chat, or does not any more. */
  toggle(key: string): void {
    const selected = new Set(this.#selected);
    if (!selected.delete(key)) selected.add(key);
    this.#selected = selected;
    this.#anchor = this.cursor = key;
  }

  /** Selects the chats from where the selection began up to this line. */
  extend(key: string): void {
    const anchor = this.placeOf(this.#anchor) >= 0 ? this.#anchor : this.cursor;
    const [from, to] = [this.placeOf(anchor), this.placeOf(key)];
    const range = this.rows.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1);
    this.#selected = new Set(range.flatMap((row) => (row.kind === "chat" ? [row.key] : [])));
    this.#anchor = anchor ?? key;
    this.cursor = key;
  }

  selectAll(): void {
    this.#selected = new Set(this.rows.flatMap((row) => (row.kind === "chat" ? [row.key] : [])));
  }

  clear(): void {
    this.#selected = new Set();
    this.#anchor = null;
  }

  /** The chats that a menu of this one is about: all that are selected, if it is among them. */
  chosen(chat: ChatSummary): ChatSummary[] {
    return this.isSelected(chatKey(chat.id)) ? this.selection : [chat];
  }
}
