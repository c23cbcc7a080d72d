import type { Attachment } from "svelte/attachments";
import { isKnownLanguage } from "../text/languages";
import type { Run } from "../text/runs";
import { highlighter } from "../text/worker";
import { drawRuns } from "./runs";

/** Cached colours of recently rendered code, so that a growing list keeps its colours. */
const known = new Map<string, Run[]>();
const MOST_KNOWN = 60;

/**
 * Highlights the code in lists and quotations. While the block is `open`, its last code may still
 * grow.
 */
export function colourCode(open: boolean): Attachment<HTMLElement> {
  return (block) => {
    const leaving = new AbortController();
    const all = [...block.querySelectorAll<HTMLElement>("code[data-language]")];
    for (const code of open ? all.slice(0, -1) : all) void colour(code, leaving.signal);
    return () => leaving.abort();
  };
}

async function colour(element: HTMLElement, signal: AbortSignal): Promise<void> {
  const language = element.dataset["language"] ?? "";
  const code = element.textContent;
  if (!isKnownLanguage(language) || code === "") return;
  const key = `${language} ${code}`;
  if (!known.has(key)) {
    const found: Run[] = [];
    const job = { code, language, lengths: [code.length] };
    const outcome = await highlighter.run(job, (_, runs) => found.push(...runs), signal);
    if (signal.aborted) return;
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, outcome === "done" ? found : []);
  }
  const runs = known.get(key) ?? [];
  if (runs.length > 0) drawRuns(element, runs);
}
