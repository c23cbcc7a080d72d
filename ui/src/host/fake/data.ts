import type { Export, DatabaseCopy, ChatTransfer, TransferState } from "../host";
import { FakeApiHost } from "./api";
import { copies, setAside } from "./library";
import { refuse } from "./models";

const noRoom = (): Promise<never> =>
  refuse("disk-full", "The disk is full: this could not be saved. Free some space and try again.");

/** Data operations of the user, simulated only by their events. */
export abstract class FakeDataHost extends FakeApiHost {
  /** Cancels every file dialog. */
  closesDialogs = false;
  #transfer: ChatTransfer["kind"] | null = null;
  #copies: DatabaseCopy[] = [...copies, setAside];

  hasRoom(): Promise<boolean> {
    return Promise.resolve(!this.full);
  }

  showDataFolder(): Promise<null> {
    this.calls.push(["showDataFolder"]);
    return Promise.resolve(null);
  }

  quit(): Promise<null> {
    this.calls.push(["quit"]);
    return Promise.resolve(null);
  }

  exportChats(what: Export): Promise<boolean> {
    this.calls.push(["exportChats", what]);
    return this.#begin("export");
  }

  importChats(): Promise<boolean> {
    this.calls.push(["importChats"]);
    return this.#begin("import");
  }

  showExported(file: string): Promise<null> {
    this.calls.push(["showExported", file]);
    return Promise.resolve(null);
  }

  cancelTransfer(): Promise<null> {
    this.calls.push(["cancelTransfer"]);
    this.endTransfer({ name: "cancelled" });
    return Promise.resolve(null);
  }

  /** Reports the progress or the end of the running transfer. */
  endTransfer(state: TransferState): void {
    if (this.#transfer === null) return;
    this.emit({ type: "transfer", transfer: { kind: this.#transfer, state } });
    if (state.name !== "running") this.#transfer = null;
  }

  #begin(kind: ChatTransfer["kind"]): Promise<boolean> {
    if (this.closesDialogs) return Promise.resolve(false);
    if (this.#transfer !== null)
      return refuse("other", "Another export, import or move is still running.");
    this.#transfer = kind;
    this.endTransfer({ name: "running", done: 0 });
    return Promise.resolve(true);
  }

  printPage(): Promise<null> {
    this.calls.push(["printPage"]);
    return Promise.resolve(null);
  }

  listBackups(): Promise<DatabaseCopy[]> {
    return this.reply(this.#copies);
  }

  backUp(): Promise<DatabaseCopy[]> {
    if (this.full) return noRoom();
    this.calls.push(["backUp"]);
    const name = `manual-2026-11-24-14.0${this.#copies.length}.db`;
    const made: DatabaseCopy = {
      name,
      reason: "asked-for",
      day: "2026-11-24",
      time: `14:0${this.#copies.length}`,
      number: 1,
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

  removeBackup(copy: string): Promise<DatabaseCopy[]> {
    this.calls.push(["removeBackup", copy]);
    this.#copies = this.#copies.filter(({ name }) => name !== copy);
    return this.reply(this.#copies);
  }

  chooseDataFolder(): Promise<boolean> {
    this.calls.push(["chooseDataFolder"]);
    return Promise.resolve(!this.closesDialogs);
  }

  beginInDefaultFolder(): Promise<null> {
    this.calls.push(["beginInDefaultFolder"]);
    return Promise.resolve(null);
  }

  moveDataFolder(keep: boolean): Promise<boolean> {
    this.calls.push(["moveDataFolder", keep]);
    return this.#begin("move");
  }
}
