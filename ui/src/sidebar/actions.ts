import Archive from "@lucide/svelte/icons/archive";
import ArchiveRestore from "@lucide/svelte/icons/archive-restore";
import FileOutput from "@lucide/svelte/icons/file-output";
import FolderInput from "@lucide/svelte/icons/folder-input";
import Pencil from "@lucide/svelte/icons/pencil";
import Pin from "@lucide/svelte/icons/pin";
import PinOff from "@lucide/svelte/icons/pin-off";
import Printer from "@lucide/svelte/icons/printer";
import Save from "@lucide/svelte/icons/save";
import Trash from "@lucide/svelte/icons/trash-2";
import Undo from "@lucide/svelte/icons/undo-2";
import type { Component } from "svelte";
import type { App } from "../state/app.svelte";
import type { MenuItem } from "../state/menu.svelte";
import type { ChatSummary } from "../state/types";
import { chatCount } from "../text/figures";

export type ChatAction = MenuItem & { icon: Component<{ size: number; strokeWidth: number }> };

/**
 * Actions for chats: the one list for the menus of a row and of the header, and for the selection
 * bar. `rename` edits the title in place, which the bar cannot do.
 */
export function actionsFor(app: App, chats: ChatSummary[], rename?: () => void): ChatAction[][] {
  const [only] = chats;
  if (!only) return [];
  const several = chats.length > 1;
  /** Label with the number of chats if there are several. */
  const named = (label: string): string => {
    if (!several) return label;
    const [verb, ...rest] = label.split(" ");
    return [verb, chatCount(chats.length), ...rest].join(" ");
  };
  const { chats: all, list } = app;

  if (chats.every(({ purgeAt }) => purgeAt !== null)) {
    return [
      [{ label: named("Restore"), icon: Undo, run: () => void all.restore(chats) }],
      [
        {
          label: `${named("Delete")} for good…`,
          icon: Trash,
          danger: true,
          run: () => (list.question = { about: "deletion", chats }),
        },
      ],
    ];
  }

  const first: ChatAction[] = [];
  const remove: ChatAction = {
    label: named("Delete"),
    icon: Trash,
    danger: true,
    run: () => void app.deletion.remove(chats),
  };
  if (rename && !several) first.push({ label: "Rename", keys: "F2", icon: Pencil, run: rename });
  if (chats.some(({ temporary }) => temporary)) {
    if (!several)
      first.push({
        label: "Keep this chat",
        icon: Save,
        run: () => void app.navigation.keep(only),
      });
    const out = several ? [] : files(app, chats, named);
    return [first, out, [remove]].filter((items) => items.length > 0);
  }
  const pinned = chats.every((chat) => chat.pinned);
  const archived = chats.every((chat) => chat.archived);
  first.push(
    {
      label: named(pinned ? "Unpin" : "Pin"),
      icon: pinned ? PinOff : Pin,
      run: () => void all.pin(chats, !pinned),
    },
    {
      label: named("Move to folder…"),
      icon: FolderInput,
      run: () => (list.question = { about: "folder", chats }),
    },
    {
      label: named(archived ? "Unarchive" : "Archive"),
      icon: archived ? ArchiveRestore : Archive,
      run: () => void all.archive(chats, !archived),
    },
  );
  return [first, files(app, chats, named), [remove]];
}

/** Actions that export or print chats. */
function files(app: App, chats: ChatSummary[], named: (label: string) => string): ChatAction[] {
  const ids = chats.map(({ id }) => id);
  const [only] = ids;
  const actions: ChatAction[] = [
    {
      label: `${named("Export")}…`,
      icon: FileOutput,
      run: () => app.transfers.exportChats(ids),
    },
  ];
  if (only !== undefined && ids.length === 1)
    actions.push({
      label: "Print…",
      ...(app.current.chat?.id === only && { keys: "Ctrl+P" }),
      icon: Printer,
      run: () => void app.transfers.print(only),
    });
  return actions;
}
