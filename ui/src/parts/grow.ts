import type { Attachment } from "svelte/attachments";

/** Keeps a text area as tall as its text; CSS sets the least and the most. */
export function grow(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    text();
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
}
