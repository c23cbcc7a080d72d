import type { DataFolder, Export, GoodCopy, ChatTransfer, TransferState } from "../host";
import { copies } from "./library";
import { refuse } from "./models";
import { FakePreferencesHost } from "./preferences";

const noRoom = (): Promise<never> =>
  refuse("disk-full", "The disk is full: this could not be saved. Free some space and try again.");

/** What a person does with their data: nothing of it happens, but the page hears of it. */
export abstract class FakeDataHost extends FakePreferencesHost {
  /** Whoever is asked for a file chooses none. */
  closesDialogs = false;
  #transfer: ChatTransfer["kind"] | null = null;
  #copies: GoodCopy[] = [...copies];

  exportChats(what: Export): Promise<boolean> {
    this.calls.push(["exportChats", what]);
    return this.#begin("export");
  }

  importChats(): Promise<boolean> {
    this.calls.push(["importChats"]);
    return this.#begin("import");
  }

  cancelTransfer(): Promise<null> {
    this.calls.push(["cancelTransfer"]);
    this.endTransfer({ name: "cancelled" });
    return Promise.resolve(null);
  }

  /** How far what runs has come, or how it ended. */
  endTransfer(state: TransferState): void {
    if (this.#transfer === null) return;
    this.emit({ type: "transfer", transfer: { kind: this.#transfer, state } });
    if (state.name !== "running") this.#transfer = null;
  }

  #begin(kind: ChatTransfer["kind"]): Promise<boolean> {
    if (this.closesDialogs) return Promise.resolve(false);
    if (this.#transfer !== null) return refuse("other", "An export or an import is still running.");
    this.#transfer = kind;
    this.endTransfer({ name: "running", done: 0 });
    return Promise.resolve(true);
  }

  printPage(): Promise<null> {
    this.calls.push(["printPage"]);
    return Promise.resolve(null);
  }

  listBackups(): Promise<GoodCopy[]> {
    return this.reply(this.#copies);
  }

  backUp(): Promise<GoodCopy[]> {
    if (this.full) return noRoom();
    this.calls.push(["backUp"]);
    const name = `manual-2026-11-24-14.0${this.#copies.length}.db`;
    const made = {
      name,
      day: "2026-11-24",
      time: `14:0${this.#copies.length}`,
      bytes: 8_400_000,
      chats: 142,
    };
    this.#copies = [made, ...this.#copies];
    return this.reply(this.#copies);
  }

  restoreBackup(copy: string): Promise<string> {
    if (this.full) return noRoom();
    this.calls.push(["restoreBackup", copy]);
    return Promise.resolve("goldcrest-set-aside-2026-11-24.db");
  }

  dataFolder(): Promise<DataFolder> {
    return this.reply({ path: "~/.local/share/goldcrest", fixed: null });
  }

  moveDataFolder(keep: boolean): Promise<boolean> {
    this.calls.push(["moveDataFolder", keep]);
    return this.#begin("move");
  }
}
