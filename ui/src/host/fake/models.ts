import type {
  ContextOption,
  ContextOptions,
  DownloadState,
  Failure,
  HostEvent,
  ModelCheck,
  ModelEntry,
  ModelInfo,
  ModelList,
  ModelView,
} from "../host";
import { agreement, big, bundledModel, loading, ready, unopened } from "./library";

const HUB = "https://huggingface.co/ggml-org/SmolLM3-3B-GGUF";

export const bundledEntry: ModelEntry = {
  id: "/usr/lib/goldcrest/models/bundled/SmolLM2-135M-Instruct.Q4_1.gguf",
  name: "SmolLM2-135M-Instruct",
  parameters: 134_515_008,
  quantisation: "Q4_1",
  bytes: bundledModel.fileBytes,
  licence: "Apache-2.0",
  source: null,
  address: null,
  file: "/usr/lib/goldcrest/models/bundled/SmolLM2-135M-Instruct.Q4_1.gguf",
  place: "bundled-model",
  authenticity: "official",
  verifiedBytes: null,
  runs: true,
  problem: null,
  note: null,
  forecast: {
    contextLength: 8192,
    memoryBytes: 300_000_000,
    fit: "fits",
    tokensPerSecond: 150,
    measured: true,
  },
  download: null,
  recommended: false,
};

/** SmolLM3-3B as in the manifest, not downloaded. */
export const q4: ModelEntry = {
  ...bundledEntry,
  id: "SmolLM3-Q4_K_M.gguf",
  name: "SmolLM3-3B",
  parameters: null,
  quantisation: "Q4_K_M",
  bytes: big.fileBytes,
  licence: "Apache-2.0",
  source: HUB,
  file: null,
  address: `${HUB}/resolve/4965cb60/SmolLM3-Q4_K_M.gguf`,
  place: null,
  forecast: {
    contextLength: 16384,
    memoryBytes: 3_310_000_000,
    fit: "fits",
    tokensPerSecond: 9.2,
    measured: false,
  },
  recommended: true,
};

export const q8: ModelEntry = {
  ...q4,
  id: "SmolLM3-Q8_0.gguf",
  quantisation: "Q8_0",
  bytes: 3_275_574_624,
  address: `${HUB}/resolve/4965cb60/SmolLM3-Q8_0.gguf`,
  forecast: {
    contextLength: 16384,
    memoryBytes: 4_670_000_000,
    fit: "slow",
    tokensPerSecond: 2.4,
    measured: false,
  },
  recommended: false,
};

/** The same model, in a file on this computer. */
export const onDisk = (
  entry: ModelEntry,
  file: string,
  place: NonNullable<ModelEntry["place"]>,
): ModelEntry => ({ ...entry, id: file, file, place });

/** The part of the scripted host for models: the open one, the list, and downloads. */
export class FakeModelHost {
  readonly calls: [string, ...unknown[]][] = [];
  /** True until `resume`, for scripts with `pauseAt`. */
  protected paused = true;
  #resume: () => void = () => undefined;
  /** Resolves with the first `resume`. */
  protected readonly resumed = new Promise<void>((resolve) => (this.#resume = resolve));
  #listener: (event: HostEvent) => void = () => undefined;
  /** Duration of a download step in milliseconds, and the number of steps. */
  readonly downloads = { stepMs: 250, steps: 40 };
  #timers = new Map<string, ReturnType<typeof setInterval>>();
  list: ModelList;

  constructor(
    protected model: ModelView,
    list: Partial<ModelList> = {},
    private readonly waitsHalfLoaded = false,
  ) {
    const { status } = model;
    const file = status.state === "none" ? null : status.model.file;
    const known = file === null ? q4 : { ...onDisk(q4, file, "opened") };
    this.list = {
      entries: [known, q8, bundledEntry],
      scanning: false,
      folder: "~/.cache/huggingface/hub",
      freeBytes: 212_400_000_000,
      ...list,
    };
  }

  /** Sends an event as the application would, for tests and screenshots. */
  emit(event: HostEvent): void {
    this.#listener(structuredClone(event));
  }

  /**
   * Resumes everything that waits because of `pauseAt` or `opensLate`, and pauses nothing from then
   * on.
   */
  resume(): void {
    this.paused = false;
    this.#resume();
  }

  subscribe(listener: (event: HostEvent) => void): Promise<null> {
    this.#listener = listener;
    return Promise.resolve(null);
  }

  protected reply<T>(value: T): Promise<T> {
    return Promise.resolve(structuredClone(value));
  }

  pickModel(): Promise<boolean> {
    this.calls.push(["pickModel"]);
    this.#load(big);
    return Promise.resolve(true);
  }

  retryModel(): Promise<null> {
    this.calls.push(["retryModel"]);
    this.#load(big);
    return Promise.resolve(null);
  }

  useBundledModel(): Promise<null> {
    this.calls.push(["useBundledModel"]);
    this.#load(bundledModel);
    return Promise.resolve(null);
  }

  ejectModel(): Promise<null> {
    this.calls.push(["ejectModel"]);
    const { status } = this.model;
    if (status.state === "ready")
      this.#show({ status: { state: "ejected", model: unopened(status.model) }, error: null });
    return Promise.resolve(null);
  }

  reloadModel(): Promise<null> {
    this.calls.push(["reloadModel"]);
    this.loadEjected();
    return Promise.resolve(null);
  }

  protected loadEjected(): void {
    const { status } = this.model;
    if (status.state === "ejected") this.#load(status.model.bundledModel ? bundledModel : big);
  }

  contextOptions(): Promise<ContextOptions | null> {
    const { status } = this.model;
    if (status.state === "none") return this.reply(null);
    const { bundledModel } = status.model;
    const lengths = bundledModel ? [8192] : [4096, 8192, 16384, 32768, 65536, 131072];
    const option = (tokens: number): ContextOption => ({
      tokens,
      kvF16Bytes: tokens * 73_728,
      kvQ8Bytes: tokens * 39_168,
      stretched: tokens > 65536,
      fitsF16: tokens <= 65536,
      fitsQ8: true,
    });
    return this.reply({
      lengths: lengths.map(option),
      automaticF16: option(bundledModel ? 8192 : 32768),
      automaticQ8: option(bundledModel ? 8192 : 65536),
    });
  }

  /** Result of the next model checks, and the duration of a step in milliseconds. */
  modelCheck: { end: ModelCheck; stepMs: number } = { end: agreement, stepMs: 0 };
  #checkStopped = false;

  checkModel(id: string | null): Promise<boolean> {
    this.calls.push(["checkModel", id]);
    this.#checkStopped = false;
    void this.#check();
    return Promise.resolve(true);
  }

  async #check(): Promise<void> {
    for (const step of ["loading", "candle", "exact", "engine"] as const) {
      const check: ModelCheck = { state: "running", step, done: 48, total: 96 };
      this.emit({ type: "modelCheck", check });
      await new Promise((resolve) => setTimeout(resolve, this.modelCheck.stepMs));
      if (this.#checkStopped) break;
    }
    const check: ModelCheck = this.#checkStopped ? { state: "stopped" } : this.modelCheck.end;
    this.emit({ type: "modelCheck", check });
  }

  stopModelCheck(): Promise<null> {
    this.calls.push(["stopModelCheck"]);
    this.#checkStopped = true;
    return Promise.resolve(null);
  }

  listModels(): Promise<ModelList> {
    return this.reply(this.list);
  }

  getModel(id: string): Promise<null> {
    this.calls.push(["getModel", id]);
    const entry = this.list.entries.find((each) => each.id === id);
    if (!entry) return refuse("other", "This model is not in the list any more.");
    this.#download(entry);
    return Promise.resolve(null);
  }

  getAddress(url: string): Promise<null> {
    this.calls.push(["getAddress", url]);
    if (!url.startsWith("https://"))
      return refuse("other", "An address begins with https://. Copy it from the page of the file.");
    const name = new URL(url).pathname.split("/").at(-1) ?? "";
    if (!name.endsWith(".gguf"))
      return refuse("other", "This is not the address of a .gguf file: it has to end in .gguf.");
    if (new URL(url).host !== "huggingface.co")
      return refuse(
        "other",
        "Goldcrest can verify only files of Hugging Face. Download this one with your browser, and open it here.",
      );
    const entry: ModelEntry = {
      ...q4,
      id: url,
      name,
      quantisation: "",
      bytes: 0,
      licence: null,
      source: url.split("/resolve/")[0] ?? null,
      address: url,
      authenticity: "unchecked",
      forecast: null,
      recommended: false,
    };
    this.setList({ entries: [...this.list.entries, entry] });
    this.#download(entry);
    return Promise.resolve(null);
  }

  pauseDownload(id: string): Promise<null> {
    this.calls.push(["pauseDownload", id]);
    clearInterval(this.#timers.get(id));
    const download = this.list.entries.find((entry) => entry.id === id)?.download;
    if (download) {
      const { done, total } = download;
      this.setDownload(id, { state: "paused", done, total });
    }
    return Promise.resolve(null);
  }

  dropDownload(id: string): Promise<null> {
    this.calls.push(["dropDownload", id]);
    clearInterval(this.#timers.get(id));
    this.setDownload(id, null);
    return Promise.resolve(null);
  }

  openModel(id: string): Promise<null> {
    this.calls.push(["openModel", id]);
    const entry = this.list.entries.find((each) => each.id === id);
    if (!entry?.file) return refuse("missing-model", "This file is not there any more.");
    this.#load({ ...big, name: entry.name, file: entry.file, quantisation: entry.quantisation });
    return Promise.resolve(null);
  }

  showModel(id: string): Promise<null> {
    this.calls.push(["showModel", id]);
    return Promise.resolve(null);
  }

  removeModel(id: string): Promise<null> {
    this.calls.push(["removeModel", id]);
    const { status } = this.model;
    if (status.state !== "none" && status.model.file === id)
      return refuse("other", "This model is in use. Open another one first; then remove it.");
    const entries = this.list.entries.filter((entry) => entry.id !== id);
    this.setList({ entries });
    return Promise.resolve(null);
  }

  pickDownloadFolder(): Promise<string | null> {
    this.calls.push(["pickDownloadFolder"]);
    return Promise.resolve("/mnt/models");
  }

  setList(part: Partial<ModelList>): void {
    this.list = { ...this.list, ...part };
    this.emit({ type: "models", list: this.list });
  }

  setDownload(id: string, download: DownloadState | null): void {
    const entries = this.list.entries.map((each) =>
      each.id === id ? { ...each, download } : each,
    );
    this.list = { ...this.list, entries };
    this.emit({ type: "download", id, download });
  }

  /** Resumes or starts a download, then verifies and opens the model. */
  #download({ id, bytes, download }: ModelEntry): void {
    const total = bytes || 1_500_000_000;
    let done = download?.done ?? 0;
    const { stepMs, steps } = this.downloads;
    const step = total / steps;
    const bytesPerSecond = (step / stepMs) * 1000;
    const running = (): DownloadState => ({
      state: "running",
      done,
      total,
      bytesPerSecond,
      secondsLeft: Math.round((total - done) / bytesPerSecond),
    });
    this.setDownload(id, running());
    clearInterval(this.#timers.get(id));
    const timer = setInterval(() => {
      done = Math.min(total, done + step);
      if (done < total) return this.setDownload(id, running());
      clearInterval(timer);
      this.setDownload(id, { state: "verifying", done, total });
      setTimeout(() => this.#arrive(id), stepMs * 2);
    }, stepMs);
    this.#timers.set(id, timer);
  }

  #arrive(id: string): void {
    const entry = this.list.entries.find((each) => each.id === id);
    if (!entry) return;
    const file = `${this.list.folder}/${entry.name}.gguf`;
    const { status } = this.model;
    const opens = status.state !== "none" && status.model.bundledModel;
    const here = onDisk({ ...entry, download: null }, file, "hugging-face");
    this.setList({ entries: this.list.entries.map((each) => (each === entry ? here : each)) });
    this.emit({ type: "downloaded", id, file, opens });
    if (opens) this.#load({ ...big, file });
  }

  #show(model: ModelView): void {
    this.model = model;
    this.emit({ type: "model", model });
  }

  #load(next: ModelInfo): void {
    let progress = 0;
    const timer = setInterval(() => {
      if (this.paused && this.waitsHalfLoaded && progress >= 0.5) return;
      progress += 0.04;
      const done = progress >= 1;
      if (done) clearInterval(timer);
      this.#show(done ? ready(next) : loading(next, progress));
    }, 60);
  }
}

export function refuse(code: Failure["code"], message: string): Promise<never> {
  return Promise.reject({ code, message } satisfies Failure);
}
