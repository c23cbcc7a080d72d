import type { Attachment } from "svelte/attachments";

/** Shows `text` as a tooltip while the pointer is on an element that has no room for all of it. */
export function wholeText(text: () => string): Attachment<HTMLElement> {
  return (element) => {
    const look = (): void => {
      if (element.scrollWidth > element.clientWidth) element.title = text();
      else element.removeAttribute("title");
    };
    element.addEventListener("pointerenter", look);
    return () => element.removeEventListener("pointerenter", look);
  };
}
