import type { ChatSummary } from "../host/host";

/** A chat with this id that was last active at this time. */
export function chat(id: number, updatedAt: number, more: Partial<ChatSummary> = {}): ChatSummary {
  return {
    id,
    title: `Chat ${id}`,
    createdAt: updatedAt,
    updatedAt,
    writing: false,
    continues: null,
    folder: null,
    pinned: false,
    archived: false,
    temporary: false,
    purgeAt: null,
    ...more,
  };
}
