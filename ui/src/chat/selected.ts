/**
 * Text and HTML of a selection, for the clipboard. The primary selection and text dragged out of
 * the window are WebKit's own: no event of the page precedes them.
 */
export type Copied = { text: string; html: string };

/** Elements kept in copied HTML. Others are replaced by their content. */
const KEPT = new Set(
  "p h3 h4 h5 h6 ul ol li blockquote pre code table thead tbody tr th td strong em s a br sub sup".split(
    " ",
  ),
);
/** Elements surrounded by an empty line. */
const APART = "p, h3, h4, h5, h6, ul, ol, pre, table, blockquote, .formula, .bubble, article";
/** Buttons and text for screen readers. */
const NO_TEXT = ".unseen, button, figcaption, svg";
/** Elements in which white space is HTML formatting. */
const NO_WORDS = "table, thead, tbody, tr, ul, ol";

/**
 * Text of a selection, with a line for each block and formulas in TeX, and its HTML without styles:
 * WebKit would copy the fonts, colours and background of the window.
 */
export function copiedFrom(selection: Range): Copied {
  const range = withWholeFormulas(selection);
  const copy = new Copy(range);
  const root = range.commonAncestorContainer;
  const element = root instanceof Element ? root : root.parentElement;
  // Elements whose content would lose its meaning without them: code, items, rows.
  const around = element?.matches(NO_WORDS)
    ? (element.closest("table") ?? element)
    : (element?.closest("pre") ?? element?.closest("code"));
  if (around) copy.read(around);
  else if (root instanceof Text) copy.read(root);
  else copy.readChildren(root);
  return copy;
}

/** Extends the selection to whole formulas: part of one is not valid TeX. */
function withWholeFormulas(selection: Range): Range {
  const range = selection.cloneRange();
  const [first, last] = [formulaAt(range.startContainer), formulaAt(range.endContainer)];
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  return range;
}

const formulaAt = (node: Node): HTMLElement | null | undefined =>
  (node instanceof Element ? node : node.parentElement)?.closest<HTMLElement>("[data-tex]");

const escaped = (text: string): string =>
  text
    .replace(/&/gu, "&amp;")
    .replace(/</gu, "&lt;")
    .replace(/>/gu, "&gt;")
    .replace(/"/gu, "&quot;");

class Copy implements Copied {
  text = "";
  html = "";
  /** Pending line breaks and list marker before the next text. */
  #ends = 0;
  #mark = "";
  #depth = 0;

  constructor(private readonly range: Range) {}

  read(node: Node): void {
    if (!this.range.intersectsNode(node)) return;
    if (node instanceof Text) this.#readText(node);
    else if (node instanceof Element) this.#readElement(node);
  }

  readChildren(node: Node): void {
    for (const child of node.childNodes) this.read(child);
  }

  #readText(node: Text): void {
    const { startContainer, startOffset, endContainer, endOffset } = this.range;
    const parent = node.parentElement;
    if (!parent || parent.matches(NO_WORDS)) return;
    const end = node === endContainer ? endOffset : node.length;
    const text = node.data.slice(node === startContainer ? startOffset : 0, end);
    if (getComputedStyle(parent).whiteSpace.startsWith("pre")) {
      this.#write(text);
      return;
    }
    const begins = this.text === "" ? node !== startContainer : this.#ends > 0;
    const words = text.replace(/\s+/gu, " ");
    this.#write(begins ? words.trimStart() : words);
  }

  #readElement(element: Element): void {
    const name = element.localName;
    const { display } = getComputedStyle(element);
    if (display === "none" || element.matches(NO_TEXT)) return;
    const tex = element instanceof HTMLElement ? element.dataset["tex"] : undefined;
    if (tex !== undefined) {
      const marks = element.matches(".formula") ? "$$" : "$";
      this.#write(marks + tex + marks);
      return;
    }
    const isBlock = !/^(?:inline|contents|table-cell)/u.test(display);
    const isApart = element.matches(APART) && !element.parentElement?.closest("li");
    const ends = isApart ? 2 : isBlock || name === "br" ? 1 : 0;
    const { html } = this;
    this.html = "";
    this.#end(ends);
    this.#readInside(element, name);
    this.html = html + tagged(element, this.html);
    this.#end(ends);
  }

  #readInside(element: Element, name: string): void {
    const before = element.previousElementSibling;
    const isCell = name === "td" || name === "th";
    if (isCell && before && this.range.intersectsNode(before)) this.#write("\t", "");
    const isList = name === "ul" || name === "ol";
    if (isList) this.#depth += 1;
    if (name === "li") this.#mark = "  ".repeat(Math.max(0, this.#depth - 1)) + markOf(element);
    this.readChildren(element);
    if (name === "li") this.#mark = "";
    if (isList) this.#depth -= 1;
  }

  #end(lines: number): void {
    if (this.text !== "") this.#ends = Math.max(this.#ends, lines);
  }

  #write(text: string, html = escaped(text)): void {
    if (text === "") return;
    if (this.#ends > 0) this.text = this.text.replace(/[ \n]+$/u, "") + "\n".repeat(this.#ends);
    this.text += this.#mark + text;
    this.html += html;
    this.#ends = 0;
    this.#mark = "";
  }
}

function markOf(item: Element): string {
  const list = item.parentElement;
  if (list?.localName !== "ol") return "- ";
  return `${Number(list.getAttribute("start") ?? 1) + [...list.children].indexOf(item)}. `;
}

function tagged(element: Element, inner: string): string {
  const name = element.localName;
  if (!KEPT.has(name)) return inner;
  if (name === "br") return "<br>";
  if (inner === "" && name !== "td" && name !== "th") return "";
  const href = name === "a" ? ` href="${escaped(element.getAttribute("href") ?? "")}"` : "";
  return `<${name}${href}>${inner}</${name}>`;
}

/** Replaces the clipboard data of a copy within this element by that of `copiedFrom`. */
export function copyPlainly(event: ClipboardEvent): void {
  const selection = document.getSelection();
  const isField =
    event.target instanceof HTMLInputElement || event.target instanceof HTMLTextAreaElement;
  if (isField || !selection || selection.isCollapsed || !event.clipboardData) return;
  const { text, html } = copiedFrom(selection.getRangeAt(0));
  event.preventDefault();
  event.clipboardData.setData("text/plain", text);
  event.clipboardData.setData("text/html", html);
}
