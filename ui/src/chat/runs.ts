import type { Run } from "../text/runs";
import { keepSelection } from "./redraw";

/** Sets the content of `element` to these runs of code. A matching prefix stays in place. */
export function drawRuns(element: HTMLElement, runs: Run[]): void {
  const shown = [...element.childNodes];
  const fresh = runs.findIndex((run, at) => !isDrawn(shown[at], run));
  const kept = fresh < 0 ? runs.length : fresh;
  const added = document.createDocumentFragment();
  for (const run of runs.slice(kept)) added.append(drawn(run));
  keepSelection(element, () => {
    for (const node of shown.slice(kept)) node.remove();
    element.append(added);
  });
}

function isDrawn(node: ChildNode | undefined, [classes, text]: Run): boolean {
  return node?.textContent === text && (node instanceof Element ? node.className : "") === classes;
}

function drawn([classes, text]: Run): Node {
  if (classes === "") return document.createTextNode(text);
  const span = document.createElement("span");
  span.className = classes;
  span.textContent = text;
  return span;
}
