import type { ModelStatus, WireError } from "../state/types";
import { count } from "../text/figures";

/** Where SmolLM3-3B can be had; the app itself fetches nothing. */
export const MODEL_PAGE = "https://huggingface.co/ggml-org/SmolLM3-3B-GGUF";

export function deviceWord({ device }: ModelStatus): string {
  if (!device) return "";
  return device.kind === "cpu" ? "CPU" : "GPU";
}

export function stateWord(status: ModelStatus): string {
  switch (status.state) {
    case "none":
      return "no model";
    case "checking":
      return "testing the GPU";
    case "loading":
      return `loading ${Math.round(status.progress * 100)} %`;
    case "ready":
      return "ready";
    case "failed":
      return "failed";
  }
}

/** What is wrong with the file that was to be opened, and which model answers meanwhile. */
export function faultWords(
  fault: WireError,
  { state, demoModel, name }: Pick<ModelStatus, "state" | "demoModel" | "name">,
): string {
  if (state !== "ready") return fault.message;
  const model = demoModel ? "the demo model" : name;
  return fault.code === "bad-model"
    ? `${fault.message} You are still using ${model}.`
    : `${fault.message} You are using ${model} for now.`;
}

/** Megabytes as a person says them: 4.6 MB, 1.9 GB. */
export function size(megabytes: number): string {
  if (megabytes >= 1000) return `${(megabytes / 1000).toFixed(1)} GB`;
  return `${megabytes < 10 ? megabytes.toFixed(1) : Math.round(megabytes)} MB`;
}

/** The last part of a path, whichever way its slashes lean. */
export function fileName(path: string): string {
  return path.split(/[\\/]/u).at(-1) ?? path;
}

/** What the context setting does, how long the context is now, and why it is not what was asked for. */
export function contextHint({
  state,
  contextLength,
  contextNote,
}: Pick<ModelStatus, "state" | "contextLength" | "contextNote">): string {
  const what = "How much of a chat the model can read at once, in tokens. More needs more memory.";
  if (state !== "ready" || contextLength === 0) return what;
  const now = `Now: ${count(contextLength)}.`;
  return [what, now, contextNote].filter(Boolean).join(" ");
}
