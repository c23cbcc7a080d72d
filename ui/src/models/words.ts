import { percentOf } from "../state/downloads";
import { remedy } from "../state/failures";
import type {
  Agreement,
  ContextOption,
  ContextOptions,
  Failure,
  Forecast,
  KvType,
  ModelCheck,
  ModelEntry,
  ModelInfo,
  ModelStatus,
  Override,
  SamplingSettings,
} from "../state/types";
import { count, rate, size, tokens } from "../text/figures";

export const deviceWord = (model: ModelInfo | null): string =>
  model === null ? "" : model.device.onGpu ? "GPU" : "CPU";

/** State of a model that cannot answer yet. `loading`: word for the loading state. */
export function openingWord(status: ModelStatus, loading = "Loading"): string | null {
  switch (status.state) {
    case "checking":
      return "Testing the GPU";
    case "loading":
      return `${loading} ${Math.round(status.progress * 100)} %`;
    case "none":
    case "ready":
    case "ejected":
      return null;
  }
}

/** Error of the file that failed to open, and the model that answers instead. */
export function faultWords(fault: Failure, open: Pick<ModelInfo, "name"> | null): string {
  if (open === null) return fault.message;
  return remedy(fault.code) === "open-another"
    ? `${fault.message} You are still using ${open.name}.`
    : `${fault.message} You are using ${open.name} for now.`;
}

/** Last segment of a path with either kind of slash. */
export function fileName(path: string): string {
  return path.split(/[\\/]/u).at(-1) ?? path;
}

/**
 * Explanation of the context setting, with the current length and the reason if it differs from the
 * requested one.
 */
export function contextHint(open: Pick<ModelInfo, "contextLength" | "contextNote"> | null): string {
  const what = "How much of a chat the model can read at once, in tokens. More needs more memory.";
  if (open === null) return what;
  const now = `Now: ${count(open.contextLength)}.`;
  return [what, now, open.contextNote].filter(Boolean).join(" ");
}

/** Sampling value of the model itself, which may differ without thinking. */
export function samplingWords(
  open: Pick<ModelInfo, "canThink" | "sampling"> | null,
  key: Exclude<keyof SamplingSettings, "seed">,
): string | null {
  if (open === null) return null;
  const { withThinking, withoutThinking } = open.sampling;
  const without = String(withoutThinking[key]);
  if (!open.canThink || withThinking[key] === withoutThinking[key]) return without;
  return `${withThinking[key]}, without thinking ${without}`;
}

/** Current step of a model check. */
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

/** Result of a model check, and the advice that follows from it. */
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

/** Formats 0.01234 as `1.23 %`. */
export const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;

const FITS = { fits: "Fits", slow: "Slow", "does-not-fit": "Does not fit" } as const;

export const fitWord = ({ fit }: Forecast): string => FITS[fit];

/** Formats a speed: 9.2 tokens/s, or about 9 tokens/s for an estimate. */
function speedOf({ tokensPerSecond, measured }: Forecast): string | null {
  if (tokensPerSecond === null) return null;
  if (measured) return rate(tokensPerSecond);
  const isSmall = tokensPerSecond < 2;
  return `about ${isSmall ? rate(tokensPerSecond) : `${count(Math.round(tokensPerSecond))} tokens/s`}`;
}

/** Speed with its origin: 9.2 tokens/s (measured), or about 9 tokens/s (estimated). */
export function speedWords(forecast: Forecast): string | null {
  const speed = speedOf(forecast);
  return speed && `${speed} (${forecast.measured ? "measured" : "estimated"})`;
}

/** Speed in a list of facts: about 9 tokens/s here. */
export function hereWords({ forecast }: Pick<ModelEntry, "forecast">): string | null {
  if (forecast === null || forecast.fit === "does-not-fit") return null;
  const speed = speedOf(forecast);
  if (forecast.fit === "slow") return speed === null ? "slow here" : `slow here: ${speed}`;
  return speed && `${speed} here`;
}

export const memoryWords = ({ memoryBytes, contextLength }: Forecast): string =>
  `${size(memoryBytes)} of memory at ${tokens(contextLength)}`;

/** Location of a file; null if there is none. */
export function placeWords({ place, file }: Pick<ModelEntry, "place" | "file">): string | null {
  switch (place) {
    case "hugging-face":
      return "Hugging Face cache";
    case "lm-studio":
      return "LM Studio";
    case "jan":
      return "Jan";
    case "llama-cpp":
      return "llama.cpp cache";
    case "gpt4-all":
      return "GPT4All";
    case "ollama":
      return "Ollama";
    case "downloads":
      return "Downloads";
    case "goldcrest":
      return "Goldcrest’s folder";
    case "bundled-model":
      return "comes with Goldcrest";
    case "opened":
      return folderName(file ?? "");
    case null:
      return null;
  }
}

/** Name of the folder that contains a file. */
function folderName(path: string): string {
  return path.split(/[\\/]/u).at(-2) ?? path;
}

/** Host name of the download server; null if unknown. */
export function serverOf({ address }: ModelEntry): string | null {
  return address !== null && URL.canParse(address) ? new URL(address).host : null;
}

/**
 * Publisher and server of a model: ggml-org on Hugging Face. The full URL contains a 40-digit
 * commit.
 */
export function sourceWords(url: string): string {
  const { host, pathname } = new URL(url);
  const owner = pathname.split("/")[1] ?? "";
  return host === "huggingface.co" && owner !== "" ? `${owner} on Hugging Face` : host;
}

/** Number of a model's weights: 3.1B, 135M. */
export function parameterWords(parameters: number): string {
  const [unit, letter] = parameters < 999.5e6 ? [1e6, "M"] : [1e9, "B"];
  const amount = parameters / unit;
  return `${amount.toFixed(amount < 10 && letter === "B" ? 1 : 0)}${letter} parameters`;
}

/** Precision of a model's weights, in words. */
export function bitsWords(quantisation: string): string | null {
  const bits = /^(?:I?Q|B?F)(\d+)/u.exec(quantisation)?.[1];
  return bits === undefined ? null : `${bits}-bit`;
}

/** Authenticity of a file; null if it is not known yet or not applicable. */
export function authenticityWords(entry: ModelEntry): string | null {
  if (entry.authenticity === "official") return "Official file";
  if (entry.file === null || entry.authenticity === "unlisted") return null;
  const done = verifiedShare(entry);
  return done === null ? "Not verified yet" : `Checking the file: ${percentOf(done)}`;
}

/** Verified share of a file, from 0 to 1; null if no verification is running. */
export const verifiedShare = ({ verifiedBytes, bytes }: ModelEntry): number | null =>
  verifiedBytes === null || bytes === 0 ? null : Math.min(1, verifiedBytes / bytes);

/**
 * Warning before a download that this computer may not have the disk space or memory for; null if
 * it has.
 */
export function warningWords(entry: ModelEntry, freeBytes: number | null): string | null {
  const { forecast, file, bytes, download } = entry;
  const needed = download?.state === "verifying" ? 0 : bytes - (download?.done ?? 0);
  if (file === null && freeBytes !== null && freeBytes < needed)
    return `Its download needs ${size(needed)} on the disk, and ${size(freeBytes)} are free.`;
  if (forecast?.fit === "does-not-fit")
    return `It needs ${size(forecast.memoryBytes)} of memory, which is more than this computer has free. It may be very slow, or not open.`;
  return null;
}

/** Suitability for this computer: Fits this computer: about 9.2 tokens/s (estimated). */
export function suitWords({ forecast }: ModelEntry): string | null {
  if (forecast === null || forecast.fit === "does-not-fit") return null;
  const speed = speedWords(forecast);
  const suits = forecast.fit === "fits" ? "Fits this computer" : "Slow on this computer";
  return `${suits}${speed === null ? "" : `: ${speed}`}.`;
}

/** A context length and its memory: 131,072 tokens · 9.0 GB (4.8 GB in 8-bit). */
export function contextWords(option: ContextOption, kvType: KvType): string {
  const { tokens: length, kvF16Bytes, kvQ8Bytes, stretched } = option;
  const parts = [
    tokens(length),
    `${size(kvF16Bytes)} (${size(kvQ8Bytes)} in 8-bit)`,
    stretched && "longer than trained",
    !fitsIn(option, kvType) && "does not fit",
  ];
  return parts.filter(Boolean).join(" · ");
}

const fitsIn = ({ fitsF16, fitsQ8 }: ContextOption, kvType: KvType): boolean =>
  kvType === "q8_0" ? fitsQ8 : fitsF16;

/** Context length that applies if none is set. */
const automatic = ({ automaticF16, automaticQ8 }: ContextOptions, kvType: KvType): ContextOption =>
  kvType === "q8_0" ? automaticQ8 : automaticF16;

/** Label of the default: Automatic · 32,768 tokens · 2.4 GB (1.3 GB in 8-bit). */
export const automaticWords = (options: ContextOptions | null, kvType: KvType): string =>
  options === null
    ? "Automatic"
    : `Automatic · ${contextWords(automatic(options, kvType), kvType)}`;

/** Explanation of the precisions, with their memory at the given or the automatic length. */
export function precisionHint(options: ContextOptions | null, length: number | null): string {
  const what = "8-bit uses half the memory and is slightly less precise.";
  if (options === null) return what;
  const set = options.lengths.find((option) => option.tokens === length);
  const [f16, q8] = set ? [set, set] : [options.automaticF16, options.automaticQ8];
  const full = (option: ContextOption, bytes: number): string =>
    `${size(bytes)} for ${tokens(option.tokens)}`;
  return `${what} 16-bit takes ${full(f16, f16.kvF16Bytes)}, 8-bit ${full(q8, q8.kvQ8Bytes)}.`;
}

/**
 * Reason why a setting is read-only: GOLDCREST_THREADS sets this to 8. Start Goldcrest without it
 * to choose here.
 */
export const overrideWords = ({ by, value }: Override): string =>
  `${by} sets this to ${value}. Start Goldcrest without it to choose here.`;
