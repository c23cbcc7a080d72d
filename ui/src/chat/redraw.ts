/**
 * Updates the content of `element` to that of `fresh`. Unchanged nodes stay in place, and with them
 * a selection.
 */
export function redraw(element: Element, fresh: ParentNode & Node): void {
  keepSelection(element, () => patch(element, fresh));
}

function patch(target: Node, fresh: Node): void {
  const shown = [...target.childNodes];
  const next = [...fresh.childNodes];
  for (const [at, node] of next.entries()) {
    const before = shown[at];
    if (!before) target.appendChild(node);
    else if (before instanceof Text && node instanceof Text) patchText(before, node.data);
    else if (!(before instanceof Element && node instanceof Element) || !isAlike(before, node))
      target.replaceChild(node, before);
    // Code is already coloured.
    else if (before.localName !== "code" || before.textContent !== node.textContent)
      patch(before, node);
  }
  for (const node of shown.slice(next.length)) node.remove();
}

/** Compares elements without their content. */
const isAlike = (a: Element, b: Element): boolean =>
  a.cloneNode(false).isEqualNode(b.cloneNode(false));

/** Replaces only the text after the common prefix: a range that ends before it is not affected. */
function patchText(node: Text, text: string): void {
  const { data } = node;
  let common = 0;
  while (common < data.length && data[common] === text[common]) common += 1;
  if (common < data.length || common < text.length)
    node.replaceData(common, data.length - common, text.slice(common));
}

type End = { node: Node; offset: number; characters: number | null };

/** Preserves the selection in `element` across a change, as far as its text stays the same. */
export function keepSelection(element: Element, change: () => void): void {
  // Chromium needs a layout to determine the selection.
  const selection = element.hasChildNodes() ? document.getSelection() : null;
  if (!selection || selection.isCollapsed || !selection.containsNode(element, true)) {
    change();
    return;
  }
  const ends = [
    endIn(element, selection.anchorNode, selection.anchorOffset),
    endIn(element, selection.focusNode, selection.focusOffset),
  ] as const;
  change();
  const [anchor, focus] = ends;
  if (!anchor || !focus) return;
  const isThere =
    selection.anchorNode === anchor.node &&
    selection.anchorOffset === anchor.offset &&
    selection.focusNode === focus.node &&
    selection.focusOffset === focus.offset;
  if (!isThere) selection.setBaseAndExtent(...placeOf(element, anchor), ...placeOf(element, focus));
}

/** End of the selection. Within `element`, includes the number of characters before it. */
function endIn(element: Element, node: Node | null, offset: number): End | null {
  if (!node) return null;
  if (!element.contains(node)) return { node, offset, characters: null };
  const before = document.createRange();
  before.setStart(element, 0);
  before.setEnd(node, offset);
  return { node, offset, characters: before.toString().length };
}

function placeOf(element: Element, { node, offset, characters }: End): [Node, number] {
  if (characters === null) return [node, offset];
  let left = characters;
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const length = text.textContent?.length ?? 0;
    if (left <= length) return [text, left];
    left -= length;
  }
  return [element, element.childNodes.length];
}
