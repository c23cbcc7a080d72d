import type { Attachment } from "svelte/attachments";

const MIDDLE = 1;

/**
 * Offers text to `take` before it is inserted, by any input method. Text that it takes (true) is
 * not inserted.
 */
export function withoutLongText(take: (text: string) => boolean): Attachment<HTMLTextAreaElement> {
  return (box) => {
    // A middle click pastes the primary selection, but its paste event holds the clipboard.
    let pastesSelection = false;
    const listeners = new AbortController();
    const { signal } = listeners;
    box.addEventListener("mousedown", ({ button }) => (pastesSelection = button === MIDDLE), {
      signal,
    });
    box.addEventListener("keydown", () => (pastesSelection = false), { signal });
    // WebKit lays out a megabyte for seconds before it fires "beforeinput".
    box.addEventListener(
      "paste",
      (event) => {
        const text = pastesSelection ? "" : (event.clipboardData?.getData("text/plain") ?? "");
        if (text !== "" && take(text)) event.preventDefault();
      },
      { signal },
    );
    box.addEventListener(
      "beforeinput",
      (event) => {
        if (take(event.data ?? "")) event.preventDefault();
      },
      { signal },
    );
    return () => listeners.abort();
  };
}
