import type { ChatSummary, Host } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

export type ChatGroup = { name: string; chats: ChatSummary[] };

/**
 * All chats, newest first. The host's events update a chat, in their order; the answer to a request may
 * come after a newer event, so it updates nothing.
 */
export class Chats {
  list = $state.raw<ChatSummary[]>([]);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly groups = $derived(groupByDate(this.list, new Date()));

  take(chats: ChatSummary[]): void {
    // A title must not read otherwise than it is written.
    const plain = (chat: ChatSummary): ChatSummary => ({
      ...chat,
      title: withoutBidiControls(chat.title),
    });
    this.list = chats.map(plain).sort(newestFirst);
  }

  put(chat: ChatSummary): void {
    this.take([...this.list.filter((each) => each.id !== chat.id), chat]);
  }

  drop(id: number): void {
    this.list = this.list.filter((each) => each.id !== id);
  }

  find(id: number | null): ChatSummary | undefined {
    return this.list.find((each) => each.id === id);
  }

  /** The chat `step` places below `id` in the list, or the first when none is open. */
  neighbour(id: number | null, step: 1 | -1): ChatSummary | undefined {
    const ordered = this.groups.flatMap((group) => group.chats);
    if (id === null) return step === 1 ? ordered[0] : undefined;
    return ordered[ordered.findIndex((each) => each.id === id) + step];
  }

  async rename(id: number, title: string): Promise<void> {
    const trimmed = title.trim();
    if (trimmed === "" || trimmed === this.find(id)?.title) return;
    await this.notices.guard(this.host.renameChat(id, trimmed));
  }

  async remove(chat: ChatSummary): Promise<void> {
    this.drop(chat.id);
    const deleted = this.host.deleteChat(chat.id).then(() => true);
    if (!(await this.notices.guard(deleted))) {
      if (!this.find(chat.id)) this.put(chat);
      return;
    }
    this.notices.show(`Deleted “${chat.title}”`, {
      label: "Undo",
      run: () => void this.#restore(chat.id),
    });
  }

  async #restore(id: number): Promise<void> {
    await this.notices.guard(this.host.restoreChat(id));
  }
}

const newestFirst = (a: ChatSummary, b: ChatSummary): number =>
  b.updatedAt - a.updatedAt || b.id - a.id;

/** Groups chats, newest first, by the calendar days of the person's own time zone. */
export function groupByDate(chats: ChatSummary[], now: Date): ChatGroup[] {
  const midnight = (daysAgo: number): number =>
    new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysAgo).getTime() / 1000;
  const bounds: [string, number][] = [
    ["Today", midnight(0)],
    ["Yesterday", midnight(1)],
    ["This week", midnight(6)],
    ["Older", -Infinity],
  ];
  const groups = bounds.map(([name]) => ({ name, chats: [] as ChatSummary[] }));
  for (const chat of chats) {
    groups[bounds.findIndex(([, from]) => chat.updatedAt >= from)]?.chats.push(chat);
  }
  return groups.filter((group) => group.chats.length > 0);
}
