import type { Attachment } from "svelte/attachments";
import { sanitise } from "../text/sanitise";
import { redraw } from "./redraw";

/** Fills an element with HTML rendered from Markdown. */
export function content(html: string): Attachment<HTMLElement> {
  return (element) => redraw(element, made(html));
}

/** Fills the head or the body of a table with the matching rows of `html`. */
export function rowsOf(section: "thead" | "tbody", html: string): Attachment<HTMLElement> {
  return (element) => {
    const rows = made(html).querySelector(section);
    if (rows) redraw(element, rows);
  };
}

function made(html: string): DocumentFragment {
  const template = document.createElement("template");
  template.innerHTML = sanitise(html);
  return template.content;
}
