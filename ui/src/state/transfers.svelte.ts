import type { Format, Host, ChatTransfer } from "../host/host";
import { chatCount } from "../text/figures";
import type { Chats } from "./chats.svelte";
import type { Dialogs } from "./dialogs.svelte";
import type { Notices } from "./notices.svelte";

/** Chats to export, or null for all. `name`: suggested file name. */
export type Exporting = { chats: number[] | null; name: string | null };

/** Last segment of a path. */
const nameOf = (path: string): string => path.split(/[/\\]/u).at(-1) ?? "";

/** Formats by file extension. */
const FORMATS: Record<string, Format> = { md: "markdown", html: "html", jsonl: "jsonl" };

/** Exports, imports and prints: the dialog, the progress and the result. */
export class Transfers {
  /** Chats to export, while the dialog is open. */
  exporting = $state.raw<Exporting | null>(null);
  /** Running transfer, and its progress from 0 to 1. */
  running = $state.raw<{ kind: ChatTransfer["kind"]; done: number } | null>(null);
  /** Set while a cancelled transfer is rolled back. */
  cancelling = $state(false);
  /** Set once the data was moved and the app is about to restart. */
  moved = $state(false);
  /** Options of the last export. */
  format = $state<Format>("markdown");
  thinking = $state(true);
  /** Chat that is being printed, as HTML. */
  printed = $state.raw<string | null>(null);
  #prints = 0;
  /** Chats that existed before an import. */
  #before = new Set<number>();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly chats: Chats,
    private readonly dialogs: Dialogs,
    private readonly open: (chat: number) => void,
  ) {}

  /** Opens the export dialog for these chats, or for all if null. */
  exportChats(chats: number[] | null): void {
    if (chats?.length !== 0) this.exporting = { chats, name: null };
  }

  /**
   * Opens the export dialog for one chat, with `file` as its name; the extension selects the
   * format.
   */
  exportTo(chat: number, file: string): void {
    const name = nameOf(file);
    const [, stem, extension = ""] = /^(.*?)(?:\.([^.]*))?$/u.exec(name) ?? [];
    const format = FORMATS[extension.toLowerCase()];
    if (format) this.format = format;
    this.exporting = { chats: [chat], name: (format ? stem : name) || null };
  }

  /** Exports with the options of the dialog, which stays open if no file is chosen. */
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

  /** Renders the whole chat for printing. The print dialog opens once that is done. */
  async print(chat: number): Promise<void> {
    const print = ++this.#prints;
    this.printed = null;
    const html = await this.notices.guard(this.host.chatAsHtml(chat, this.thinking));
    // A later print may have been requested meanwhile.
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

  /** Action that shows an exported file in its folder. */
  #showing(file: string): { label: string; run: () => void } {
    const run = (): void => void this.notices.guard(this.host.showExported(file));
    return { label: "Show in folder", run };
  }

  /** Listed chats, newest first. */
  #listed(): number[] {
    return this.chats.listed.map(({ id }) => id);
  }

  receive({ kind, state }: ChatTransfer): void {
    if (state.name === "refused") {
      // The running transfer continues.
      this.notices.warn(state.message);
      return;
    }
    if (state.name === "running" && this.running === null) {
      this.#before = new Set(this.#listed());
      // The progress, and the button that cancels it, are in the main window.
      this.dialogs.settingsPage = null;
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
        // Omissions are reported in further sentences.
        const isReport = state.message.includes(". ");
        const first = this.#listed().find((chat) => !this.#before.has(chat));
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
