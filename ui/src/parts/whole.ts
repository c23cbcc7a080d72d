import type { Attachment } from "svelte/attachments";

/**
 * Shows `text` as a tooltip while it is truncated, which is when it is wider than `room`, and `more`
 * in any case.
 */
export function wholeText(
  text: () => string,
  room = (element: HTMLElement): number => element.clientWidth,
  more?: () => string,
): Attachment<HTMLElement> {
  return (element) => {
    // Runs before the event reaches the document, where the tooltip reads the text.
    const look = (): void => {
      const whole = element.scrollWidth > room(element) ? text() : "";
      element.dataset["tip"] = [whole, more?.() ?? ""].filter(Boolean).join("\n");
    };
    element.addEventListener("pointerover", look);
    return () => element.removeEventListener("pointerover", look);
  };
}
