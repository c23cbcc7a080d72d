import type { Attachment } from "svelte/attachments";

/**
 * Has `take` look at a text before it comes into the box, by whatever way: what it takes (true) stays outside. The event
 * of a paste does not tell what the middle button brings: that is the selection, and not the clipboard.
 */
export function withoutLongText(take: (text: string) => boolean): Attachment<HTMLTextAreaElement> {
  return (box) => {
    const look = (event: InputEvent): void => {
      if (take(event.data ?? "")) event.preventDefault();
    };
    box.addEventListener("beforeinput", look);
    return () => box.removeEventListener("beforeinput", look);
  };
}
