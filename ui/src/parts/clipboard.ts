/**
 * Copies text, and returns true on success. Falls back to the selection in older web views without
 * the clipboard API.
 */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/**
 * Copies by selecting the text. A modal dialog must contain it, since nothing outside can be
 * selected.
 */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  ([...document.querySelectorAll("dialog:modal")].at(-1) ?? document.body).append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return copied;
}

/** Checks if a paste has no text. */
export function bringsNoText({ clipboardData }: ClipboardEvent): boolean {
  return clipboardData !== null && !clipboardData.types.includes("text/plain");
}
