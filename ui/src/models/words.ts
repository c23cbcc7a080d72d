import { remedy } from "../state/failures";
import type { Agreement, Failure, ModelCheck, ModelInfo, ModelStatus } from "../state/types";
import { count } from "../text/figures";

/** Where SmolLM3-3B can be had; the app itself fetches nothing. */
export const MODEL_PAGE = "https://huggingface.co/ggml-org/SmolLM3-3B-GGUF";

export const deviceWord = (model: ModelInfo | null): string =>
  model === null ? "" : model.device.onGpu ? "GPU" : "CPU";

/** What a model is doing that cannot answer yet; `loading` begins what is said while it is loaded. */
export function openingWord(status: ModelStatus, loading = "Loading"): string | null {
  switch (status.state) {
    case "checking":
      return "Testing the GPU";
    case "loading":
      return `${loading} ${Math.round(status.progress * 100)} %`;
    case "none":
    case "ready":
      return null;
  }
}

/** What is wrong with the file that was to be opened, and which model answers meanwhile. */
export function faultWords(
  fault: Failure,
  open: Pick<ModelInfo, "demoModel" | "name"> | null,
): string {
  if (open === null) return fault.message;
  const model = open.demoModel ? "the demo model" : open.name;
  return remedy(fault.code) === "open-another"
    ? `${fault.message} You are still using ${model}.`
    : `${fault.message} You are using ${model} for now.`;
}

/** Bytes as a person says them: 4.6 MB, 1.9 GB. */
export function size(bytes: number): string {
  const megabytes = Math.round(bytes / 1e5) / 10;
  if (megabytes >= 1000) return `${(megabytes / 1000).toFixed(1)} GB`;
  return `${megabytes < 10 ? megabytes.toFixed(1) : Math.round(megabytes)} MB`;
}

/** The last part of a path, whichever way its slashes lean. */
export function fileName(path: string): string {
  return path.split(/[\\/]/u).at(-1) ?? path;
}

/** What the context setting does, how long the context is now, and why it is not what was asked for. */
export function contextHint(open: Pick<ModelInfo, "contextLength" | "contextNote"> | null): string {
  const what = "How much of a chat the model can read at once, in tokens. More needs more memory.";
  if (open === null) return what;
  const now = `Now: ${count(open.contextLength)}.`;
  return [what, now, open.contextNote].filter(Boolean).join(" ");
}

/** What a check of the model is doing. */
export function checkStepWords({
  step,
  done,
  total,
}: Pick<Extract<ModelCheck, { state: "running" }>, "step" | "done" | "total">): string {
  const read = `${count(done)} of ${count(total)} tokens`;
  switch (step) {
    case "loading":
      return "candle, an independent program, loads the model.";
    case "candle":
      return `candle reads a text: ${read}.`;
    case "exact":
      return `Goldcrest reads it in exact arithmetic: ${read}.`;
    case "engine":
      return `Goldcrest reads it as it runs here: ${read}.`;
  }
}

/** What a check of the model found, and what to do about it. */
export function checkVerdictWords(verdict: Agreement): string {
  switch (verdict) {
    case "agree":
      return "Checked: Goldcrest and candle agree. Both are as close to the exact result as rounding allows.";
    case "engine_differs":
      return "Goldcrest’s results differ from the exact ones on this device. Choose another device in the settings.";
    case "candle_differs":
      return "Goldcrest and candle do not agree on this model, and the comparison cannot tell which of the two is wrong.";
    case "both_differ":
      return "Neither Goldcrest nor candle is close to the exact result on this device. Choose another device in the settings.";
    case "damaged":
      return "The weights in this file are damaged. Download or copy the file once more.";
  }
}

/** `0.01234` as `1.23 %`. */
export const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;
