import type { Format, Host, Imported, Source, ChatTransfer } from "../host/host";
import { count } from "../text/figures";
import type { Notices } from "./notices.svelte";

/** What is to be exported: chats, or all of them. */
export type Exporting = { chats: number[] | null };

/** Exports, imports and prints: what is asked for, what is running, and what became of it. */
export class Transfers {
  /** The chats whose export is being asked for, while the dialog is open. */
  exporting = $state.raw<Exporting | null>(null);
  /** What runs, and which part of it is done. */
  running = $state.raw<{ kind: ChatTransfer["kind"]; done: number } | null>(null);
  /** The data was moved: the app is about to start again. */
  moved = $state(false);
  /** How an export was made last. */
  format = $state<Format>("markdown");
  thinking = $state(true);
  /** A chat that is being printed, as HTML. */
  printed = $state.raw<string | null>(null);
  /** Hears that something begins: it is seen, and can be cancelled, in the window itself. */
  onbegin: () => void = () => undefined;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Asks how and where to export these chats; none: all. */
  exportChats(chats: number[] | null): void {
    if (chats?.length !== 0) this.exporting = { chats };
  }

  /** Exports as the dialog says. It stays open where no file was chosen. */
  async export(): Promise<void> {
    if (!this.exporting) return;
    const { chats } = this.exporting;
    const begun = this.host.exportChats({ chats, format: this.format, thinking: this.thinking });
    if (await this.notices.guard(begun)) this.exporting = null;
  }

  async import(): Promise<void> {
    await this.notices.guard(this.host.importChats());
  }

  /** Has the whole chat drawn for paper; the dialog opens when it is. */
  async print(chat: number): Promise<void> {
    this.printed = null;
    this.printed = await this.notices.guard(this.host.chatAsHtml(chat, this.thinking));
  }

  async printPage(): Promise<void> {
    await this.notices.guard(this.host.printPage());
  }

  cancel(): void {
    void this.notices.guard(this.host.cancelTransfer());
  }

  receive({ kind, state }: ChatTransfer): void {
    if (state.name === "running" && this.running === null) this.onbegin();
    this.running = state.name === "running" ? { kind, done: state.done } : null;
    switch (state.name) {
      case "running":
        break;
      case "exported":
        this.notices.show(`Exported ${chatCount(state.chats)} to ${state.file}`);
        break;
      case "imported":
        if (state.added > 0) this.notices.changed(importWords(state));
        else this.notices.show(importWords(state));
        break;
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

const NAMES: Record<Source, string> = {
  goldcrest: "Goldcrest",
  "chat-gpt": "ChatGPT",
  claude: "Claude",
  jan: "Jan",
  "lm-studio": "LM Studio",
};

export const chatCount = (chats: number): string =>
  chats === 1 ? "1 chat" : `${count(chats)} chats`;

/** What became of the chats of an import. */
export function importWords({ added, changed, known, empty, cut, sources }: Imported): string {
  const from = sources.map((source) => NAMES[source]).join(" and ");
  const parts = [
    added === 0 && known > 0
      ? "There was nothing new to import."
      : `Imported ${chatCount(added)}${from === "" ? "" : ` from ${from}`}.`,
  ];
  if (known > 0) parts.push(`${chatCount(known)} ${known === 1 ? "was" : "were"} here already.`);
  if (changed > 0)
    parts.push(
      changed === 1
        ? "One had gone on since, and stands beside the earlier one."
        : `${count(changed)} had gone on since, and stand beside the earlier ones.`,
    );
  if (empty > 0)
    parts.push(`${chatCount(empty)} without messages ${empty === 1 ? "was" : "were"} left out.`);
  if (cut > 0)
    parts.push(`${cut === 1 ? "One text was" : `${count(cut)} texts were`} too long, and cut.`);
  return parts.join(" ");
}
