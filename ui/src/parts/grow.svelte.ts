import type { Attachment } from "svelte/attachments";

/** Text of this length is taller than any text area gets, and takes long to measure. */
const LONGEST = 10_000;

/**
 * Keeps a text area as tall as its text; CSS sets the least and the most. The text is measured in a twin that is out
 * of the flow: to measure the area itself, its height has to be taken back, and then all beside it is laid out twice
 * for each key.
 */
export function grow(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    const twin = twinOf(area);
    const fit = (): void => {
      const { value } = area;
      const isLong = value.length > LONGEST;
      // Without text there is no line to measure, and the first key would move what is around by a part of a pixel.
      if (!isLong) twin.value = value || " ";
      const height = isLong ? "100vh" : `${twin.scrollHeight}px`;
      if (area.style.height !== height) area.style.height = height;
    };
    $effect(() => {
      void text();
      fit();
    });
    // Another width breaks the lines elsewhere.
    let width = area.clientWidth;
    const resized = new ResizeObserver(() => {
      if (area.clientWidth === width) return;
      width = area.clientWidth;
      fit();
    });
    resized.observe(area);
    return () => {
      resized.disconnect();
      twin.remove();
    };
  };
}

function twinOf(area: HTMLTextAreaElement): HTMLTextAreaElement {
  const twin = area.cloneNode() as HTMLTextAreaElement;
  for (const name of ["aria-label", "placeholder"]) twin.removeAttribute(name);
  twin.tabIndex = -1;
  twin.ariaHidden = "true";
  twin.readOnly = true;
  Object.assign(twin.style, {
    position: "absolute",
    insetInline: "0",
    height: "0",
    minHeight: "0",
    visibility: "hidden",
    contain: "strict",
    pointerEvents: "none",
  });
  area.after(twin);
  return twin;
}
