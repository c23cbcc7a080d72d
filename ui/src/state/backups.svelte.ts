import type { DataFolder, GoodCopy, Host } from "../host/host";
import { copyName } from "./recovery.svelte";
import { type Notices, reason } from "./notices.svelte";

/** The copies of the database, and the folder where all is kept. */
export class Backups {
  /** The newest first; null while they are read. */
  copies = $state.raw<GoodCopy[] | null>(null);
  folder = $state.raw<DataFolder | null>(null);
  /** What is being done, in words. */
  busy = $state("");
  /** The copy whose restoring is to be confirmed. */
  asked = $state<string | null>(null);
  /** Why the last thing did not work. */
  error = $state("");

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    /** Begins the page again, with what is there now. */
    private readonly reload: () => void,
  ) {}

  async load(): Promise<void> {
    this.error = "";
    this.asked = null;
    try {
      this.folder = await this.host.dataFolder();
      const copies = await this.host.listBackups();
      // One that is being made brings a newer list.
      if (this.busy === "") this.copies = copies;
    } catch (error) {
      this.error = reason(error);
    }
  }

  async backUp(): Promise<void> {
    await this.#act("Backing up…", async () => {
      this.copies = await this.host.backUp();
      this.notices.show("Your chats are backed up.");
    });
  }

  async restore(copy: GoodCopy): Promise<void> {
    await this.#act(`Restoring ${copyName(copy)}…`, async () => {
      await this.host.restoreBackup(copy.name);
      this.reload();
    });
  }

  async move(keep: boolean): Promise<void> {
    await this.#act("", async () => {
      await this.host.moveDataFolder(keep);
    });
  }

  async #act(busy: string, act: () => Promise<void>): Promise<void> {
    if (this.busy !== "") return;
    this.busy = busy;
    this.error = "";
    await act().catch((error: unknown) => (this.error = reason(error)));
    this.busy = "";
  }
}
