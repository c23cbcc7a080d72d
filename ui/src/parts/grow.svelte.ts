import type { Attachment } from "svelte/attachments";

/**
 * Length, in characters, of a text that exceeds the maximum height in any case and is slow to
 * measure.
 */
const LONGEST = 10_000;

/**
 * Fits the height of a text area to its text, within limits set by CSS. The text is measured in a
 * copy outside the layout flow: measuring the text area itself requires resetting its height, which
 * forces two layouts of everything around it at each key.
 */
export function grow(text: () => string): Attachment<HTMLTextAreaElement> {
  return (area) => {
    const twin = twinOf(area);
    const fit = (): void => {
      const { value } = area;
      const isLong = value.length > LONGEST;
      // An empty copy would be a fraction of a pixel lower, and the first key would move the
      // layout.
      if (!isLong) twin.value = value || " ";
      const height = isLong ? "100vh" : `${twin.scrollHeight}px`;
      if (area.style.height !== height) area.style.height = height;
    };
    $effect(() => {
      void text();
      fit();
    });
    // A change of width changes the line breaks.
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
