import type { DownloadState, ModelEntry } from "../host";
import type { Script } from "./fake";
import { big, bundledModel, ready } from "./library";
import { bundledEntry, onDisk, q4, q8 } from "./models";

const at = { done: 412_300_000, total: q4.bytes };
const running: DownloadState = {
  state: "running",
  ...at,
  bytesPerSecond: 8_230_000,
  secondsLeft: 183,
};

/** The bundled model is open, and these are in the list. */
const list = (...entries: ModelEntry[]): Script => ({
  model: ready(bundledModel),
  models: { entries: [...entries, bundledEntry] },
});
const downloading = (download: DownloadState): Script => list({ ...q4, download }, q8);

const forecast = { ...q4.forecast, contextLength: 4096, memoryBytes: 2_480_000_000 } as const;
const small = {
  ...forecast,
  fit: "does-not-fit",
  tokensPerSecond: 0.6,
  measured: false,
} as const;

/** Files of other apps and in other folders. */
const shelf: ModelEntry[] = [
  onDisk(q4, "~/.lmstudio/models/ggml-org/SmolLM3-3B-GGUF/SmolLM3-Q4_K_M.gguf", "lm-studio"),
  {
    ...onDisk(q8, "~/Downloads/SmolLM3-Q8_0.gguf", "downloads"),
    authenticity: "unlisted",
    note: "It has the size of the official file, but not its content.",
    forecast: q8.forecast && { ...q8.forecast, measured: true },
  },
  {
    ...onDisk(
      q8,
      "~/jan/models/smollm3-3b-finetuned-on-seven-years-of-my-own-notes-and-letters.f16.gguf",
      "jan",
    ),
    name: "smollm3-3b-finetuned-on-seven-years-of-my-own-notes-and-letters",
    quantisation: "F16",
    bytes: 6_160_000_000,
    licence: null,
    source: null,
    address: null,
    authenticity: "unlisted",
    forecast: { ...small, memoryBytes: 7_600_000_000 },
  },
  {
    ...onDisk(
      q8,
      "~/Models/\u0646\u0645\u0648\u0630\u062c \u0635\u063a\u064a\u0631.gguf",
      "opened",
    ),
    name: "\u0646\u0645\u0648\u0630\u062c \u0635\u063a\u064a\u0631",
    quantisation: "Q5_K_M",
    licence: null,
    source: null,
    address: null,
    authenticity: "unlisted",
    forecast: null,
    problem: "The file ends early: 1.2 GB of 2.2 GB are there. Download or copy it once more.",
  },
];

/** A fine-tuned model of another publisher, which fits. */
const tuned: ModelEntry = {
  ...onDisk(q4, "~/.lmstudio/models/me/it/SmolLM3-3B-notes.gguf", "lm-studio"),
  name: "SmolLM3-3B-notes",
  licence: "mit",
  source: "https://huggingface.co/me/SmolLM3-3B-notes",
  address: null,
  authenticity: "unlisted",
  recommended: false,
};

/** A model of another family on this computer, with this many billions of parameters. */
const other = (
  name: string,
  billions: number,
  file: string,
  place: NonNullable<ModelEntry["place"]>,
): ModelEntry => ({
  ...onDisk(q4, file, place),
  name,
  parameters: billions * 1e9,
  bytes: Math.round(billions * 0.61e9),
  licence: null,
  source: null,
  address: null,
  authenticity: "unlisted",
  forecast: {
    contextLength: 8192,
    memoryBytes: Math.round(billions * 0.61e9 + 0.9e9),
    fit: billions > 9 ? "does-not-fit" : billions > 5 ? "slow" : "fits",
    tokensPerSecond: Math.round(28 / billions),
    measured: false,
  },
  recommended: false,
});

/** A file of an unsupported architecture. */
const foreign = (
  name: string,
  kind: string,
  file: string,
  place: NonNullable<ModelEntry["place"]>,
): ModelEntry => ({
  ...other(name, 4, file, place),
  parameters: null,
  forecast: null,
  runs: false,
  problem: `This is ${kind}. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files.`,
});

const LM_STUDIO = "~/.lmstudio/models/lmstudio-community";
const BLOBS = "~/.ollama/models/blobs";

/** Models of several apps, more than the list shows ungrouped. */
const collection: ModelEntry[] = [
  ...shelf.slice(0, 1),
  other(
    "Llama 3.2 3B Instruct",
    3.2,
    `${LM_STUDIO}/Llama-3.2-3B-Instruct-Q4_K_M.gguf`,
    "lm-studio",
  ),
  other("Qwen3 4B", 4, `${BLOBS}/sha256-3e4c`, "ollama"),
  other("SmolLM2 1.7B Instruct", 1.7, `${BLOBS}/sha256-77ab`, "ollama"),
  other(
    "Qwen2.5 Coder 7B Instruct",
    7.6,
    `${LM_STUDIO}/Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf`,
    "lm-studio",
  ),
  other("Qwen2.5 0.5B Instruct", 0.5, "~/Downloads/qwen2.5-0.5b-instruct-q4_k_m.gguf", "downloads"),
  other("Llama 3.1 8B Instruct", 8, "~/jan/models/llama3.1-8b-instruct/model.gguf", "jan"),
  other("Qwen3 14B", 14.8, `${LM_STUDIO}/Qwen3-14B-Q4_K_M.gguf`, "lm-studio"),
  other("SmolLM2 360M Instruct", 0.36, "~/Downloads/SmolLM2-360M-Instruct.gguf", "downloads"),
  other("Llama 3.2 1B Instruct", 1.2, `${BLOBS}/sha256-74f1`, "ollama"),
];

const unable: ModelEntry[] = [
  foreign(
    "gemma-3-4b-it",
    "a Gemma 3 model",
    `${LM_STUDIO}/gemma-3-4b-it-Q4_K_M.gguf`,
    "lm-studio",
  ),
  foreign("phi3.5", "a Phi 3 model", `${BLOBS}/sha256-9d11`, "ollama"),
];

/** Scenes of the models page and the offer. */
export const downloads: Record<string, Script> = {
  "first-download": { ...downloading(running), firstStart: true, filled: false },
  download: downloading(running),
  "download-waiting": downloading({
    state: "waiting",
    ...at,
    message: "Can't reach huggingface.co: its name was not found.",
    seconds: 30,
  }),
  "download-verifying": downloading({ state: "verifying", ...at }),
  "download-paused": downloading({ state: "paused", ...at }),
  "download-failed": downloading({
    state: "failed",
    ...at,
    message: "The connection was lost, and huggingface.co did not answer again. Try again later.",
  }),
  "first-found": { ...list(...shelf.slice(0, 1), q8), firstStart: true, filled: false },
  "first-checking": {
    ...list(
      q4,
      {
        ...onDisk(q4, "~/Downloads/SmolLM3-Q4_K_M.gguf", "downloads"),
        authenticity: "unchecked",
        verifiedBytes: 805_300_000,
      },
      q8,
    ),
    firstStart: true,
    filled: false,
  },
  "first-other": {
    ...list(q4, tuned, q8),
    firstStart: true,
    filled: false,
  },
  found: list(...shelf, q8),
  collection: { ...list(...collection, ...unable, q8), model: ready(big) },
  "does-not-fit": list(
    { ...q4, forecast: small },
    { ...q8, forecast: { ...small, memoryBytes: 3_900_000_000 } },
  ),
  "no-room": {
    model: ready(bundledModel),
    models: { freeBytes: 1_210_000_000 },
  },
  scanning: { model: ready(bundledModel), models: { scanning: true } },
};
