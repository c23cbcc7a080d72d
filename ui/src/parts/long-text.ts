import type { Attachment } from "svelte/attachments";

/**
 * Has `take` look at a text before it comes into the box: what it takes (true) stays outside. A paste and a drop have
 * events of their own; what the middle button pastes in WebKitGTK is told by `beforeinput` alone.
 */
export function withoutLongText(take: (text: string) => boolean): Attachment<HTMLTextAreaElement> {
  return (box) => {
    const brought = (event: Event): string | null | undefined => {
      if (event instanceof ClipboardEvent) return event.clipboardData?.getData("text/plain");
      if (event instanceof DragEvent) return event.dataTransfer?.getData("text/plain");
      return event instanceof InputEvent ? event.data : null;
    };
    const look = (event: Event): void => {
      if (take(brought(event) ?? "")) event.preventDefault();
    };
    for (const name of ["paste", "drop", "beforeinput"]) box.addEventListener(name, look);
    return () => {
      for (const name of ["paste", "drop", "beforeinput"]) box.removeEventListener(name, look);
    };
  };
}
