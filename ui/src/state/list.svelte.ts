import type { ChatSummary, DeletedMessage, Host } from "../host/host";
import { type Chats, plain } from "./chats.svelte";
import type { Folders } from "./folders.svelte";
import type { Notices } from "./notices.svelte";
import { chatKey, folderKey, plainRows, type Row, rowsOf } from "./rows";

/** Views of the list in the sidebar. */
export type ListView = "chats" | "archive" | "bin";

/** Dialog of the list: to choose a folder for chats, or to confirm their permanent deletion. */
export type ListQuestion = { about: "folder" | "deletion"; chats: ChatSummary[] };

/** The list in the sidebar: its rows, the focused one and the selected ones. */
export class ChatList {
  view = $state<ListView>("chats");
  /** Deleted chats at the last refresh of the bin, most recently deleted first. */
  bin = $state.raw<ChatSummary[]>([]);
  /** True once the bin has been loaded. */
  binKnown = $state(false);
  /** Deleted messages of other chats, at the same refresh. */
  deletedMessages = $state.raw<DeletedMessage[]>([]);
  question = $state.raw<ListQuestion | null>(null);
  /** Key of the row whose name is being edited. */
  renaming = $state<string | null>(null);
  /** Row from which the arrow keys start: the one last focused or clicked. */
  cursor = $state<string | null>(null);
  #selected = $state.raw<ReadonlySet<string>>(new Set());
  /** Start of a range selection. */
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
  /** Selected chats that are still in the list, in its order. */
  readonly selection = $derived.by(() =>
    this.#selected.size === 0
      ? []
      : this.rows.flatMap((row) =>
          row.kind === "chat" && this.#selected.has(row.key) ? [row.chat] : [],
        ),
  );

  /** Shows a view and clears the selection. */
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
    // A later refresh has newer data.
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

  /** Creates a folder and edits its name in place. */
  async newFolder(): Promise<void> {
    const { renaming } = this;
    await this.show("chats");
    const folder = await this.folders.create(this.folders.freeName(), []);
    // The user may have begun another rename or opened another view meanwhile.
    const isWatched = this.view === "chats" && this.renaming === renaming;
    if (folder !== null && isWatched) this.renaming = folderKey(folder);
  }

  placeOf(key: string | null): number {
    return (key === null ? undefined : this.#places.get(key)) ?? -1;
  }

  /** The chat `step` places below `id` in the list, or the first if none is open. */
  neighbour(id: number | null, step: 1 | -1): ChatSummary | undefined {
    const ordered = this.rows.flatMap((row) => (row.kind === "chat" ? [row.chat] : []));
    const at = ordered.findIndex((chat) => chat.id === id);
    if (at < 0) return step === 1 ? ordered[0] : undefined;
    return ordered[at + step];
  }

  /** Row that is `step` away from the cursor, not counting group headings. */
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

  /** Toggles the selection of a chat. */
  toggle(key: string): void {
    const selected = new Set(this.#selected);
    if (!selected.delete(key)) selected.add(key);
    this.#selected = selected;
    this.#anchor = this.cursor = key;
  }

  /** Selects the chats from the start of the selection to this row. */
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

  /** Chats that a menu of this one applies to: the whole selection if it includes the chat. */
  chosen(chat: ChatSummary): ChatSummary[] {
    return this.isSelected(chatKey(chat.id)) ? this.selection : [chat];
  }
}
