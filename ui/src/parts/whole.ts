import type { Attachment } from "svelte/attachments";

/**
 * Shows `text` as a tooltip while it is truncated, which is when it is wider than `room`, and `more`
 * in any case. The tooltip is that of the button around it, if there is one, which takes the focus.
 */
export function wholeText(
  text: () => string,
  room = (element: HTMLElement): number => element.clientWidth,
  more?: () => string,
): Attachment<HTMLElement> {
  return (element) => {
    const anchor = element.closest("button") ?? element;
    // Runs before the event reaches the document, where the tooltip reads the text.
    const look = (): void => {
      const whole = element.scrollWidth > room(element) ? text() : "";
      anchor.dataset["tip"] = [whole, more?.() ?? ""].filter(Boolean).join("\n");
    };
    anchor.addEventListener("pointerover", look);
    anchor.addEventListener("focusin", look);
    return () => {
      anchor.removeEventListener("pointerover", look);
      anchor.removeEventListener("focusin", look);
    };
  };
}
