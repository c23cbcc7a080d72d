import type { Attachment } from "svelte/attachments";

/** Text of this length is taller than any text area gets, and takes long to measure. */
const LONGEST = 10_000;

/** Keeps a text area as tall as its text; CSS sets the least and the most. */
export function grow(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    if (text().length > LONGEST) {
      area.style.height = "100vh";
      return;
    }
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  };
}
