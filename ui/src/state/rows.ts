import type { ChatSummary, Folder } from "../host/host";

/** Drop target for chats: "pinned", a folder's id, or "loose" for no folder. */
export type Section = "pinned" | "loose" | number;

/** A row of the list of chats. `key` identifies it in the list. */
export type Row =
  | { kind: "group"; key: string; name: string; section: Section | null; inFolder?: true }
  | { kind: "folder"; key: string; folder: Folder; chats: number; section: Section }
  | { kind: "chat"; key: string; chat: ChatSummary; section: Section | null };

/** Rows of the list: temporary and pinned chats, folders with their chats, and the rest by date. */
export function rowsOf(chats: ChatSummary[], folders: Folder[], now: Date): Row[] {
  const temporary: ChatSummary[] = [];
  const pinned: ChatSummary[] = [];
  const loose: ChatSummary[] = [];
  /** A pinned chat counts in its folder, but is listed at the top. */
  const inFolders = new Map(
    folders.map(({ id }) => [id, { count: 0, shown: [] as ChatSummary[] }]),
  );
  for (const chat of chats) {
    if (chat.archived) continue;
    const folder = inFolders.get(chat.folder ?? 0);
    if (folder) folder.count += 1;
    if (chat.temporary) temporary.push(chat);
    else if (chat.pinned) pinned.push(chat);
    else (folder?.shown ?? loose).push(chat);
  }
  const rows: Row[] = [
    ...group("Temporary", temporary, null),
    ...group("Pinned", pinned, "pinned"),
  ];
  // Without a heading, folders below pinned chats would also look pinned.
  if (rows.length > 0 && folders.length > 0)
    rows.push({ kind: "group", key: "Folders", name: "Folders", section: null });
  for (const folder of folders) {
    const { id } = folder;
    const { count = 0, shown = [] } = inFolders.get(id) ?? {};
    rows.push({
      kind: "folder",
      key: folderKey(id),
      folder,
      chats: count,
      section: id,
    });
    if (folder.collapsed) continue;
    for (const chat of shown) rows.push(rowOf(chat, id));
    if (count > 0) continue;
    const key = `empty-${id}`;
    rows.push({ kind: "group", key, name: "No chats yet", section: id, inFolder: true });
  }
  for (const { name, chats } of groupByDate(loose, now)) rows.push(...group(name, chats, "loose"));
  return rows;
}

/** Chats in their order, without groups. */
export const plainRows = (chats: ChatSummary[]): Row[] => chats.map((chat) => rowOf(chat, null));

export const folderKey = (id: number): string => `folder-${id}`;

export const chatKey = (id: number): string => `chat-${id}`;

function group(name: string, chats: ChatSummary[], section: Section | null): Row[] {
  if (chats.length === 0) return [];
  const heading: Row = { kind: "group", key: name, name, section };
  return [heading, ...chats.map((chat) => rowOf(chat, section))];
}

function rowOf(chat: ChatSummary, section: Section | null): Row {
  return { kind: "chat", key: chatKey(chat.id), chat, section };
}

/** Groups chats, newest first, by calendar day in the user's time zone. */
function groupByDate(chats: ChatSummary[], now: Date): { name: string; chats: ChatSummary[] }[] {
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
