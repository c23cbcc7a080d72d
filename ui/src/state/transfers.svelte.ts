import type { Format, Host, ChatTransfer } from "../host/host";
import { chatCount } from "../text/figures";
import type { Notices } from "./notices.svelte";

/** What is to be exported: chats, or all of them. `name`: what the file is to be called. */
export type Exporting = { chats: number[] | null; name: string | null };

/** The last part of a path. */
const nameOf = (path: string): string => path.split(/[/\\]/u).at(-1) ?? "";

/** The formats by the extensions of their files. */
const FORMATS: Record<string, Format> = { md: "markdown", html: "html", jsonl: "jsonl" };

/** Exports, imports and prints: what is asked for, what is running, and what became of it. */
export class Transfers {
  /** The chats whose export is being asked for, while the dialog is open. */
  exporting = $state.raw<Exporting | null>(null);
  /** What runs, and which part of it is done. */
  running = $state.raw<{ kind: ChatTransfer["kind"]; done: number } | null>(null);
  /** What runs was asked to end, and is being undone. */
  cancelling = $state(false);
  /** The data was moved: the app is about to start again. */
  moved = $state(false);
  /** How an export was made last. */
  format = $state<Format>("markdown");
  thinking = $state(true);
  /** A chat that is being printed, as HTML. */
  printed = $state.raw<string | null>(null);
  #prints = 0;
  /** The chats that were there before an import. */
  #before = new Set<number>();
  /** The chats that are listed, the latest first, and how one is opened. */
  listed: () => number[] = () => [];
  open: (chat: number) => void = () => undefined;
  /** Hears that something begins: it is seen, and can be cancelled, in the window itself. */
  onbegin: () => void = () => undefined;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Asks how and where to export these chats; none: all. */
  exportChats(chats: number[] | null): void {
    if (chats?.length !== 0) this.exporting = { chats, name: null };
  }

  /** Asks the same of one chat, whose file is called `file`; its extension says which format. */
  exportTo(chat: number, file: string): void {
    const name = nameOf(file);
    const [, stem, extension = ""] = /^(.*?)(?:\.([^.]*))?$/u.exec(name) ?? [];
    const format = FORMATS[extension.toLowerCase()];
    if (format) this.format = format;
    this.exporting = { chats: [chat], name: (format ? stem : name) || null };
  }

  /** Exports as the dialog says. It stays open where no file was chosen. */
  async export(): Promise<void> {
    const { exporting, format, thinking } = this;
    if (!exporting) return;
    const begun = await this.notices.guard(
      this.host.exportChats({ ...exporting, format, thinking }),
    );
    if (begun && this.exporting === exporting) this.exporting = null;
  }

  async import(): Promise<void> {
    await this.notices.guard(this.host.importChats());
  }

  /** Has the whole chat drawn for paper; the dialog opens when it is. */
  async print(chat: number): Promise<void> {
    const print = ++this.#prints;
    this.printed = null;
    const html = await this.notices.guard(this.host.chatAsHtml(chat, this.thinking));
    // Another one may have been asked for meanwhile.
    if (print === this.#prints) this.printed = html;
  }

  async printPage(): Promise<void> {
    await this.notices.guard(this.host.printPage());
  }

  async cancel(): Promise<void> {
    this.cancelling = true;
    const asked = await this.notices.guard(this.host.cancelTransfer().then(() => true));
    if (!asked) this.cancelling = false;
  }

  /** Leads from a file that was written to the folder that it is in. */
  #showing(file: string): { label: string; run: () => void } {
    const run = (): void => void this.notices.guard(this.host.showExported(file));
    return { label: "Show in folder", run };
  }

  receive({ kind, state }: ChatTransfer): void {
    if (state.name === "refused") {
      // What runs goes on.
      this.notices.warn(state.message);
      return;
    }
    if (state.name === "running" && this.running === null) {
      this.#before = new Set(this.listed());
      this.onbegin();
    }
    this.running = state.name === "running" ? { kind, done: state.done } : null;
    if (!this.running) this.cancelling = false;
    switch (state.name) {
      case "running":
        break;
      case "exported": {
        const exported = `Exported ${chatCount(state.chats)} to`;
        if (state.note) this.notices.warn(`${exported} ${state.file}. ${state.note}`);
        else this.notices.show(`${exported} ${nameOf(state.file)}`, this.#showing(state.file));
        break;
      }
      case "imported": {
        // What was left out is said in further sentences.
        const isReport = state.message.includes(". ");
        const first = this.listed().find((chat) => !this.#before.has(chat));
        const look =
          first === undefined ? undefined : { label: "Show", run: () => this.open(first) };
        if (state.added) this.notices.changed(state.message, "", isReport, look);
        else this.notices.show(state.message, undefined, isReport);
        break;
      }
      case "moved":
        this.moved = true;
        break;
      case "cancelled":
        this.notices.show(CANCELLED[kind]);
        break;
      case "failed":
        this.notices.warn(state.message);
        break;
      default:
        state satisfies never;
    }
  }
}

const CANCELLED: Record<ChatTransfer["kind"], string> = {
  export: "The export was cancelled. No file was written.",
  import: "The import was cancelled. Nothing was imported.",
  move: "The move was cancelled. Your data stays where it is.",
};
