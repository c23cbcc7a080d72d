import { sanitise } from "../../text/sanitise";
import { apiFailed, apiListening } from "./api";
import { FakeHost, type Script } from "./fake";
import {
  big,
  damaged,
  bundledModel,
  foreign,
  loading,
  missing,
  ready,
  rejectedGpu,
  unopened,
} from "./library";
import { downloads } from "./downloads";
import { allowedTools, servers } from "./tools";

/**
 * Scenes, selected by URL parameters: `scene=`, `rate=` words per second, `pause=` at a word,
 * `messages=` of the newest chat, `context=` tokens of the model.
 */
const scenes: Record<string, Script> = {
  usual: {},
  first: { firstStart: true, filled: false, model: ready(bundledModel) },
  bundledModel: { model: ready(bundledModel) },
  long: { exchanges: 60 },
  "rejected-gpu": { model: ready(rejectedGpu) },
  "slow-start": { opensLate: true },
  "no-start": { startFails: true },
  checking: { model: { status: { state: "checking", model: unopened(big) }, error: null } },
  loading: { model: loading(big, 0.42) },
  format: { model: ready(foreign) },
  ...downloads,
  "own-settings": { settings: { contextLength: 12345, unloadMinutes: 45 } },
  overridden: {
    overrides: {
      device: { by: "GOLDCREST_DEVICE", value: "cpu" },
      threads: { by: "GOLDCREST_THREADS", value: "3" },
      context: { by: "--context", value: "5000" },
    },
  },
  servers: { servers, settings: { tools: ["calculate", "search_chats"], allowedTools } },
  api: { api: apiListening },
  "api-failed": { api: apiFailed },
  ejected: { model: { status: { state: "ejected", model: unopened(big) }, error: null } },
  none: { filled: false, model: { status: { state: "none" }, error: null } },
  damaged: { problem: damaged },
  "damaged-part": { problem: { ...damaged, opens: true, copies: damaged.copies.slice(0, 1) } },
  missing: { problem: { ...missing, copies: missing.copies.slice(0, 1) } },
  "damaged-alone": { problem: { ...damaged, copies: [] } },
  "folder-missing": {
    problem: {
      ...damaged,
      kind: "folder-missing",
      message: "Your chats were moved to /run/media/ada/Chats, and that folder is missing.",
      folder: "/run/media/ada/Chats",
      copies: [],
      keptAs: null,
    },
  },
  full: {
    problem: {
      ...damaged,
      kind: "disk-full",
      message: "The disk is full: this could not be saved. Free some space and try again.",
      copies: [],
      keptAs: null,
    },
  },
  crashed: {
    model: {
      ...ready(bundledModel),
      error: {
        code: "crashed",
        message: "SmolLM3-Q4_K_M.gguf was not opened: the app ended the last time it was opened.",
      },
    },
  },
  "missing-model": {
    model: {
      ...ready(bundledModel),
      error: {
        code: "missing-model",
        message: "SmolLM3-Q4_K_M.gguf is no longer in ~/Models.",
      },
    },
  },
  error: {
    model: {
      ...ready(bundledModel),
      error: {
        code: "bad-model",
        message:
          "gemma-3-4b-it-Q4_K_M.gguf is a Gemma 3 model. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files.",
      },
    },
  },
};

declare global {
  interface Window {
    /** Scripted host, for tests. */
    stage?: FakeHost;
    /** Sanitiser of answers, for tests. */
    sanitise?: typeof sanitise;
  }
}

export function openStage(query: string): FakeHost {
  const asked = new URLSearchParams(query);
  const script = { ...scenes[asked.get("scene") ?? "usual"] };
  const rate = Number(asked.get("rate"));
  if (rate > 0) script.rate = rate;
  const pauseAt = Number(asked.get("pause"));
  if (pauseAt > 0) script.pauseAt = pauseAt;
  const messages = Number(asked.get("messages"));
  if (messages > 0) script.longest = Math.ceil(messages / 2);
  const contextLength = Number(asked.get("context"));
  if (contextLength > 0) script.model = ready({ ...big, contextLength });
  const reading = asked.get("reading");
  if (reading !== null) script.readingMs = Number(reading);
  window.sanitise = sanitise;
  window.stage = new FakeHost(script);
  window.stage.library.fill(Number(asked.get("more") ?? 0));
  return window.stage;
}
