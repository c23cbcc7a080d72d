import type { Attachment } from "svelte/attachments";

const MIDDLE = 1;

/** Has `take` look at a text before it comes into the box, by whatever way: what it takes (true) stays outside. */
export function withoutLongText(take: (text: string) => boolean): Attachment<HTMLTextAreaElement> {
  return (box) => {
    // The middle button pastes the selection, and the event of a paste has the clipboard in its place.
    let pastesSelection = false;
    const listeners = new AbortController();
    const { signal } = listeners;
    box.addEventListener("mousedown", ({ button }) => (pastesSelection = button === MIDDLE), {
      signal,
    });
    box.addEventListener("keydown", () => (pastesSelection = false), { signal });
    // WebKit lays a megabyte out for seconds before it asks by "beforeinput".
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
