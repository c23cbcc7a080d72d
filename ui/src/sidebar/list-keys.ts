import type { App } from "../state/app.svelte";
import type { Row } from "../state/rows";

/**
 * Handles the keys of the focused row. `go` moves the focus; `page` is the number of visible rows.
 */
export function listKey(
  event: KeyboardEvent,
  app: App,
  page: number,
  go: (row: Row) => void,
): boolean {
  const { list, folders } = app;
  const { key, shiftKey, altKey } = event;
  const ctrl = event.ctrlKey || event.metaKey;
  const row = list.rows[list.placeOf(list.cursor)];
  if (!row || altKey) return false;

  if (ctrl && !shiftKey && key.toLowerCase() === "a") {
    list.selectAll();
    return true;
  }
  if (ctrl && key === " " && row.kind === "chat") {
    list.toggle(row.key);
    return true;
  }
  if (key === "Escape" && list.selection.length > 0) {
    list.clear();
    return true;
  }
  if (ctrl) return false;
  if (key === "F2" && (row.kind === "folder" || (row.kind === "chat" && list.view !== "bin"))) {
    list.renaming = row.key;
    return true;
  }
  if (row.kind === "folder" && !shiftKey && (key === "ArrowLeft" || key === "ArrowRight")) {
    void folders.collapse(row.folder, key === "ArrowLeft");
    return true;
  }
  const steps: Record<string, number> = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: page,
    PageUp: -page,
    Home: -Infinity,
    End: Infinity,
  };
  const step = steps[key];
  if (step === undefined) return false;
  const next = list.next(step);
  if (!next) return true;
  if (shiftKey) list.extend(next.key);
  go(next);
  return true;
}
