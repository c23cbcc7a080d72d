import type { Host, HostEvent, ModelEntry, ModelList } from "../host/host";
import { copyText } from "../parts/clipboard";
import { withoutBidiControls } from "../text/bidi";
import { fold } from "../text/query";
import { spokenWords } from "./downloads";
import type { Model } from "./model.svelte";
import { reason, type Notices } from "./notices.svelte";

/** Limit of models in the header's menu. */
const OTHERS = 5;

/** File name of a model. */
export const fileOf = ({ file }: ModelEntry): string => file?.split(/[\\/]/u).at(-1) ?? "";

/** Name and quantisation of a model. */
export const wholeName = ({ name, quantisation }: ModelEntry): string =>
  `${name} ${quantisation}`.trim();

/** Offer to a new user: to download a model, or to open an official file on this computer. */
export type ModelOffer = {
  way: "get" | "open";
  entry: ModelEntry;
  /** For a download, a local file that is still being verified or is not official. */
  found: ModelEntry | null;
};

/**
 * Models on this computer or available for download, and the page that lists them. The host owns
 * the downloads: it sends the whole list when it changes, and progress in between.
 */
export class Models {
  list = $state.raw<ModelList | null>(null);
  /** True while the models page is open. */
  shown = $state(false);
  /** Result of the last request, for the head of the page. */
  outcome = $state.raw<{ text: string; tone: "plain" | "error" } | null>(null);
  /** Announcement about the downloads. */
  spoken = $state("");
  #lists = 0;
  /** Downloaded model that is to be opened. */
  #arrived: { name: string; file: string } | null = null;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly model: Model,
  ) {}

  readonly #entries = $derived.by(() => this.list?.entries ?? []);
  readonly #files = $derived.by(() => this.#entries.filter(({ file, place }) => file ?? place));
  /** Models on this computer that can run. */
  readonly here = $derived.by(() => this.#files.filter(({ runs }) => runs));
  /** Files of unsupported architectures. */
  readonly foreign = $derived.by(() => this.#files.filter(({ runs }) => !runs));
  /** Alternatives in the header's menu, most recently used first. */
  readonly others = $derived.by(() =>
    this.here
      .filter(
        (entry) =>
          entry.problem === null && entry.place !== "bundled-model" && !this.isCurrent(entry),
      )
      .slice(0, OTHERS),
  );
  readonly toDownload = $derived.by(() =>
    this.#entries.filter(({ file, place }) => !file && !place),
  );

  /** Running download, else a paused one. */
  readonly downloading = $derived.by((): ModelEntry | null => {
    const begun = this.#entries.filter(({ download }) => download !== null);
    return begun.find(isComing) ?? begun[0] ?? null;
  });

  /** Offer to a new user; null before the list is loaded. */
  readonly offer = $derived.by((): ModelOffer | null => {
    const coming = this.#entries.find(isComing);
    if (coming) return { way: "get", entry: coming, found: null };
    const wanted = this.toDownload.find(({ recommended }) => recommended) ?? null;
    if (wanted?.download) return { way: "get", entry: wanted, found: null };
    const files = this.here.filter(
      ({ place, problem, note }) => place !== "bundled-model" && problem === null && note === null,
    );
    // An unverified file may turn out to be damaged.
    const whole = files.filter(({ authenticity }) => authenticity !== "unchecked");
    const fitting = whole.filter(({ forecast }) => forecast?.fit !== "does-not-fit");
    const official = best(fitting.filter(({ authenticity }) => authenticity === "official"));
    const isSlower = official?.forecast?.fit === "slow" && wanted?.forecast?.fit === "fits";
    if (official && !isSlower) return { way: "open", entry: official, found: null };
    const verifying = best(files.filter(({ verifiedBytes }) => verifiedBytes !== null));
    if (wanted) return { way: "get", entry: wanted, found: verifying ?? best(fitting) };
    const other = best(fitting) ?? best(whole);
    return other && { way: "open", entry: other, found: null };
  });

  /** Checks if this model is open, being opened or unloaded. */
  isCurrent(entry: ModelEntry): boolean {
    const { known } = this.model;
    if (known === null) return false;
    return entry.place === "bundled-model" ? known.bundledModel : entry.file === known.file;
  }

  /** Checks if this page is the source of a model in the list. */
  isSource(url: string): boolean {
    return this.#entries.some(({ source }) => source === url);
  }

  /** Reloads the list, and searches this computer for files again. */
  async refresh(): Promise<void> {
    const lists = this.#lists;
    const list = await this.notices.guard(this.host.listModels());
    // An event received meanwhile is newer.
    if (list && lists === this.#lists) this.#take(list);
  }

  show(): void {
    this.outcome = null;
    this.shown = true;
    void this.refresh();
  }

  close(): void {
    this.shown = false;
  }

  receive(event: Extract<HostEvent, { type: "models" | "download" | "downloaded" }>): void {
    switch (event.type) {
      case "models":
        this.#take(event.list);
        break;
      case "download":
        this.#takeDownload(event);
        break;
      case "downloaded":
        this.#takeFile(event);
        break;
      default:
        event satisfies never;
    }
  }

  /** Starts or resumes the download of a model. */
  async get({ id }: ModelEntry): Promise<void> {
    await this.#ask(this.host.getModel(id));
  }

  /** Starts a download by URL. Resolves to the reason for a refusal, or to null. */
  async getAddress(url: string): Promise<string | null> {
    this.outcome = null;
    return this.host.getAddress(url).then(() => null, reason);
  }

  async pause({ id }: ModelEntry): Promise<void> {
    await this.#ask(this.host.pauseDownload(id));
  }

  /** Deletes the partial download of a model. */
  async drop(entry: ModelEntry): Promise<void> {
    const dropped = await this.#ask(this.host.dropDownload(entry.id));
    if (dropped) this.#tell(`The incomplete download of ${entry.name} is being removed.`);
  }

  /** Opens a model, and shows the chat. */
  async open({ id, place }: ModelEntry): Promise<void> {
    this.close();
    if (place === "bundled-model") await this.model.useBundledModel();
    else await this.#ask(this.host.openModel(id));
  }

  /** Copies the download URL of a model. */
  async copyAddress({ address }: ModelEntry): Promise<void> {
    if (await copyText(address ?? "")) this.#say("The address is copied.");
    else this.outcome = { text: "The address could not be copied.", tone: "error" };
  }

  /** Models on this computer with exactly this name, else all whose name contains every word. */
  named(words: string): ModelEntry[] {
    const wanted = fold(words.trim());
    const called = this.here.filter((entry) => fold(wholeName(entry)) === wanted);
    if (called.length > 0) return called;
    return this.here.filter((entry) =>
      fold(`${wholeName(entry)} ${fileOf(entry)}`).includes(wanted),
    );
  }

  /** Opens a model by name. Shows the models page if the name is ambiguous or unknown. */
  async openNamed(name: string): Promise<void> {
    if (this.list === null) await this.refresh();
    const [found, another] = this.named(name);
    if (found && !another) {
      await this.open(found);
      return;
    }
    this.show();
    const text = another
      ? `Several models have “${name}” in their names. Open the one that you mean.`
      : `No model on this computer is called “${name}”.`;
    this.outcome = { text, tone: "plain" };
  }

  /** Opens a file that the user chooses, and shows the chat. */
  async pick(): Promise<void> {
    if (await this.#ask(this.host.pickModel())) this.close();
  }

  /** Unloads the open model; the next message loads it again. */
  async eject(): Promise<void> {
    await this.#ask(this.host.ejectModel());
  }

  /** Reloads an unloaded model. */
  async reload(): Promise<void> {
    await this.#ask(this.host.reloadModel());
  }

  /** Lets the user choose the folder for downloads; null if they cancel. */
  async chooseFolder(): Promise<string | null> {
    return this.notices.guard(this.host.pickDownloadFolder());
  }

  async reveal({ id }: ModelEntry): Promise<void> {
    await this.#ask(this.host.showModel(id));
  }

  async remove(entry: ModelEntry): Promise<void> {
    const moved = await this.#ask(this.host.removeModel(entry.id));
    if (moved) this.#tell(`${fullName(entry)} is in the trash.`);
  }

  /** Returns true if the request succeeds, false if it fails or is cancelled. */
  async #ask(request: Promise<unknown>): Promise<boolean> {
    this.outcome = null;
    const granted = request.then(
      (answer) => answer !== false,
      (error: unknown) => {
        if (!this.shown) throw error;
        // The page would cover a notice.
        this.outcome = { text: reason(error), tone: "error" };
        return false;
      },
    );
    return (await this.notices.guard(granted)) ?? false;
  }

  #say(text: string): void {
    this.outcome = { text, tone: "plain" };
  }

  #take(list: ModelList): void {
    this.#lists += 1;
    this.list = { ...list, entries: list.entries.map(withPlainName) };
  }

  #takeDownload({ id, download }: Extract<HostEvent, { type: "download" }>): void {
    if (this.list === null) return;
    const entries = this.list.entries.map((entry) => {
      if (entry.id !== id) return entry;
      if (download) this.spoken = spokenWords(entry.name, entry.download, download) ?? this.spoken;
      return { ...entry, download };
    });
    this.list = { ...this.list, entries };
  }

  #takeFile({ id, file, opens }: Extract<HostEvent, { type: "downloaded" }>): void {
    const entry = this.#entries.find((each) => each.id === id || each.file === file);
    const name = entry?.name ?? withoutBidiControls(id);
    const done = `${name} is downloaded and verified.`;
    if (opens) {
      this.#tell(`${done} Opening it now.`);
      this.#arrived = { name, file };
      this.followModel();
    } else if (this.shown) this.#say(done);
    else this.notices.show(done, { label: "Open", run: () => void this.#openFile(file) });
  }

  /**
   * Reports on a downloaded model once it is open. The chat also shows an error, but the page
   * covers it.
   */
  followModel(): void {
    const arrived = this.#arrived;
    const { status, error, open } = this.model;
    if (!arrived || status.state === "loading" || status.state === "checking") return;
    if (open?.file === arrived.file) this.#tell(`You are now talking to ${arrived.name}.`);
    else if (error && this.shown) this.outcome = { text: error.message, tone: "error" };
    // It is not open yet.
    else if (!error && (open?.bundledModel ?? true)) return;
    this.#arrived = null;
  }

  /** Shows a text where the user sees it: on the page if that is open, else in a notice. */
  #tell(text: string): void {
    if (this.shown) this.#say(text);
    else this.notices.show(text);
  }

  async #openFile(file: string): Promise<void> {
    const entry = this.here.find((each) => each.file === file);
    if (entry) await this.open(entry);
  }
}

/** Name and quantisation: SmolLM3-3B, Q4_K_M. */
export const fullName = ({ name, quantisation }: ModelEntry): string =>
  [name, quantisation].filter(Boolean).join(", ");

/** Returns true while a download is in progress. */
function isComing({ download }: ModelEntry): boolean {
  const state = download?.state;
  return state === "running" || state === "waiting" || state === "verifying";
}

/** File to offer first. */
function best(files: ModelEntry[]): ModelEntry | null {
  return (
    files.find(({ recommended }) => recommended) ??
    files.find(({ authenticity }) => authenticity === "official") ??
    files[0] ??
    null
  );
}

/** Names come from untrusted files and URLs. */
function withPlainName(entry: ModelEntry): ModelEntry {
  return { ...entry, name: withoutBidiControls(entry.name) };
}
