import { type Block, BlockReader } from "./blocks";
import { codeFigure } from "./markdown";
import { type Drawn, joinTables } from "./tables";

/** Renders an answer for a document, which has no scripts or buttons. */
export function answerHtml(markdown: string): string {
  const blocks: Block[] = new BlockReader().read(markdown, false).groups.flat();
  return withoutButtons(joinTables(blocks).map(htmlOf).join(""));
}

function htmlOf(block: Drawn): string {
  if (block.kind === "code") return codeFigure(block.code, block.language);
  const html = block.kind === "html" ? block.html : tableOf(block.parts);
  return block.joined && block.kind === "html" ? `<div class="joined">${html}</div>\n` : html;
}

const BODY_END = /<\/tbody>\s*<\/table><\/div>\s*$/u;

/** Merges the parts of a table, each of which repeats the head. */
function tableOf(parts: string[]): string {
  return parts
    .map((part, at) => {
      const rows = at === 0 ? part : part.slice(part.indexOf("<tbody>") + "<tbody>".length);
      return at === parts.length - 1 ? rows : rows.replace(BODY_END, "");
    })
    .join("");
}

const BUTTON = /<button type="button" class="copy"[^>]*>Copy<\/button>/gu;
const withoutButtons = (html: string): string => html.replace(BUTTON, "");
