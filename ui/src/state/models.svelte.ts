import type { Host, HostEvent, ModelEntry, ModelList } from "../host/host";
import { copyText } from "../parts/clipboard";
import { withoutBidiControls } from "../text/bidi";
import { fold } from "../text/query";
import { spokenWords } from "./downloads";
import type { Model } from "./model.svelte";
import { reason, type Notices } from "./notices.svelte";

/** The most models that the header offers. */
const OTHERS = 5;

/** The name of a model's file. */
export const fileOf = ({ file }: ModelEntry): string => file?.split(/[\\/]/u).at(-1) ?? "";

/** The name of a model with its quantisation. */
export const wholeName = ({ name, quantisation }: ModelEntry): string =>
  `${name} ${quantisation}`.trim();

/** What a new user is offered: to download a model, or to open the official file that is on this computer. */
export type ModelOffer = {
  way: "get" | "open";
  entry: ModelEntry;
  /** Beside a download: a file that is here, which is verified just now, or is not the official one. */
  found: ModelEntry | null;
};

/** The models that are on this computer or can be downloaded, and the page that lists them. */
export class Models {
  list = $state.raw<ModelList | null>(null);
  /** The models page is open. */
  shown = $state(false);
  /** What came of the last request, for the head of the page. */
  outcome = $state.raw<{ text: string; tone: "plain" | "error" } | null>(null);
  /** What is read aloud of the downloads. */
  spoken = $state("");
  #lists = 0;
  /** A model that came in, until it is open. */
  #arrived: { name: string; file: string } | null = null;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly model: Model,
  ) {}

  readonly #entries = $derived.by(() => this.list?.entries ?? []);
  readonly #files = $derived.by(() => this.#entries.filter(({ file, place }) => file ?? place));
  /** Models on this computer that run. */
  readonly here = $derived.by(() => this.#files.filter(({ runs }) => runs));
  /** Files of architectures that do not run. */
  readonly foreign = $derived.by(() => this.#files.filter(({ runs }) => !runs));
  /** What the header offers in place of the open model, the one that was used last first. */
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

  /** The model that is coming in, or whose download waits. */
  readonly downloading = $derived.by((): ModelEntry | null => {
    const begun = this.#entries.filter(({ download }) => download !== null);
    return begun.find(isComing) ?? begun[0] ?? null;
  });

  /** What a new user is offered; null before the list is there. */
  readonly offer = $derived.by((): ModelOffer | null => {
    const coming = this.#entries.find(isComing);
    if (coming) return { way: "get", entry: coming, found: null };
    const wanted = this.toDownload.find(({ recommended }) => recommended) ?? null;
    if (wanted?.download) return { way: "get", entry: wanted, found: null };
    const files = this.here.filter(
      ({ place, problem, note }) => place !== "bundled-model" && problem === null && note === null,
    );
    // One that is not verified may turn out to be damaged.
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

  /** Whether this is the model that is open, being opened, or unloaded. */
  isCurrent(entry: ModelEntry): boolean {
    const { known } = this.model;
    if (known === null) return false;
    return entry.place === "bundled-model" ? known.bundledModel : entry.file === known.file;
  }

  /** Whether a model of the list comes from this page. */
  isSource(url: string): boolean {
    return this.#entries.some(({ source }) => source === url);
  }

  /** Asks for the list, and has this computer searched for files once more. */
  async refresh(): Promise<void> {
    const lists = this.#lists;
    const list = await this.notices.guard(this.host.listModels());
    // An event that came meanwhile knows more.
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

  /** Begins the download of a model, or goes on with it. */
  async get({ id }: ModelEntry): Promise<void> {
    await this.#ask(this.host.getModel(id));
  }

  /** Begins the download of an address; why it is refused, or null. */
  async getAddress(url: string): Promise<string | null> {
    this.outcome = null;
    return this.host.getAddress(url).then(() => null, reason);
  }

  async pause({ id }: ModelEntry): Promise<void> {
    await this.#ask(this.host.pauseDownload(id));
  }

  /** Forgets what of a model was downloaded. */
  async drop(entry: ModelEntry): Promise<void> {
    const dropped = await this.#ask(this.host.dropDownload(entry.id));
    if (dropped) this.#tell(`The incomplete download of ${entry.name} is being removed.`);
  }

  /** Opens a model, and shows the chat that goes on with it. */
  async open({ id, place }: ModelEntry): Promise<void> {
    this.close();
    if (place === "bundled-model") await this.model.useBundledModel();
    else await this.#ask(this.host.openModel(id));
  }

  /** Copies the address that a model is downloaded from. */
  async copyAddress({ address }: ModelEntry): Promise<void> {
    if (await copyText(address ?? "")) this.#say("The address is copied.");
    else this.outcome = { text: "The address could not be copied.", tone: "error" };
  }

  /** The models on this computer that are called so; where none is, those that have the words in their names. */
  named(words: string): ModelEntry[] {
    const wanted = fold(words.trim());
    const called = this.here.filter((entry) => fold(wholeName(entry)) === wanted);
    if (called.length > 0) return called;
    return this.here.filter((entry) =>
      fold(`${wholeName(entry)} ${fileOf(entry)}`).includes(wanted),
    );
  }

  /** Opens the model of a name; where there are several, or none, the page shows which there are. */
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

  /** Has a file chosen, and shows the chat that goes on with it. */
  async pick(): Promise<void> {
    if (await this.#ask(this.host.pickModel())) this.close();
  }

  /** Frees the open model's memory; the next message loads it again. */
  async eject(): Promise<void> {
    await this.#ask(this.host.ejectModel());
  }

  /** Loads the model that was unloaded. */
  async reload(): Promise<void> {
    await this.#ask(this.host.reloadModel());
  }

  /** The folder that downloads are to go to; null where none was chosen. */
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

  /** Whether the request was granted: not refused, and not taken back. */
  async #ask(request: Promise<unknown>): Promise<boolean> {
    this.outcome = null;
    const granted = request.then(
      (answer) => answer !== false,
      (error: unknown) => {
        if (!this.shown) throw error;
        // Behind the page nobody would see a notice.
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

  /** The model has changed: one that came in may be open now. Why it is not is said in the chat, which the page hides. */
  followModel(): void {
    const arrived = this.#arrived;
    const { status, error, open } = this.model;
    if (!arrived || status.state === "loading" || status.state === "checking") return;
    if (open?.file === arrived.file) this.#tell(`You are now talking to ${arrived.name}.`);
    else if (error && this.shown) this.outcome = { text: error.message, tone: "error" };
    // It is still to be opened.
    else if (!error && (open?.bundledModel ?? true)) return;
    this.#arrived = null;
  }

  /** Says something where it is seen. */
  #tell(text: string): void {
    if (this.shown) this.#say(text);
    else this.notices.show(text);
  }

  async #openFile(file: string): Promise<void> {
    const entry = this.here.find((each) => each.file === file);
    if (entry) await this.open(entry);
  }
}

/** A model and its quantisation: SmolLM3-3B, Q4_K_M. */
export const fullName = ({ name, quantisation }: ModelEntry): string =>
  [name, quantisation].filter(Boolean).join(", ");

/** Whether a download takes its course. */
function isComing({ download }: ModelEntry): boolean {
  const state = download?.state;
  return state === "running" || state === "waiting" || state === "verifying";
}

/** The file that is offered first. */
function best(files: ModelEntry[]): ModelEntry | null {
  return (
    files.find(({ recommended }) => recommended) ??
    files.find(({ authenticity }) => authenticity === "official") ??
    files[0] ??
    null
  );
}

/** Names come from files and addresses that anyone can write. */
function withPlainName(entry: ModelEntry): ModelEntry {
  return { ...entry, name: withoutBidiControls(entry.name) };
}
