import type { Attachment } from "svelte/attachments";
import { sanitise } from "../text/sanitise";

/** Fills the head or the body of a table with the rows that `html` has there. */
export function rowsOf(section: "thead" | "tbody", html: string): Attachment<HTMLElement> {
  return (element) => {
    const made = document.createElement("template");
    made.innerHTML = sanitise(html);
    element.replaceChildren(...(made.content.querySelector(section)?.childNodes ?? []));
  };
}
