/** Copies text; whether it did. Older web views without the clipboard interface take the selection's way. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Behind a modal dialog nothing can be selected: there the dialog holds the text. */
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

/** A paste that brings nothing, because the clipboard has no text. */
export function bringsNoText({ clipboardData }: ClipboardEvent): boolean {
  return clipboardData !== null && !clipboardData.types.includes("text/plain");
}
