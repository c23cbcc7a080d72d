import type { MarkdownIt } from "markdown-it";

const BOX = /^\[([ xX])\](?:\s+|$)/u;

/** Task lists: items that begin with `[ ]` or `[x]`. The checkbox is read-only. */
export function tasks(md: MarkdownIt): void {
  md.core.ruler.after("inline", "tasks", ({ tokens }) => {
    for (const [at, item] of tokens.entries()) {
      const [first] = tokens[at + 2]?.children ?? [];
      if (item.type !== "list_item_open" || tokens[at + 1]?.type !== "paragraph_open") continue;
      const [mark, sign] = first?.type === "text" ? (BOX.exec(first.content) ?? []) : [];
      if (!first || mark === undefined) continue;
      item.attrSet("class", sign === " " ? "task" : "task done");
      first.content = first.content.slice(mark.length);
    }
  });
  md.renderer.rules["list_item_open"] = (tokens, at, _options, _env, renderer) => {
    const token = tokens[at];
    const kind = token?.attrGet("class") ?? "";
    const box = kind === "task" ? ["☐", "To do"] : ["☑", "Done"];
    const sign = `<span class="box" role="img" aria-label="${box[1]}">${box[0]}</span>`;
    return `<li${token ? renderer.renderAttrs(token) : ""}>${kind === "" ? "" : sign}`;
  };
}
