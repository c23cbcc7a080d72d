import type { Attachment } from "svelte/attachments";

/** Shows `text` as a tooltip while it is truncated: when it is wider than `room`. */
export function wholeText(
  text: () => string,
  room = (element: HTMLElement): number => element.clientWidth,
): Attachment<HTMLElement> {
  return (element) => {
    const look = (): void => {
      if (element.scrollWidth > room(element)) element.title = text();
      else element.removeAttribute("title");
    };
    element.addEventListener("pointerenter", look);
    return () => element.removeEventListener("pointerenter", look);
  };
}
