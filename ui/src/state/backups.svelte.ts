import type { DatabaseCopy, Host } from "../host/host";
import { copyName } from "./recovery.svelte";
import { type Notices, reason } from "./notices.svelte";

/** Note that backups still contain chats removed from the database. */
export const inBackups = (chats: number): string =>
  `Backups made before still contain ${chats === 1 ? "it" : "them"} until newer ones replace them; what was kept before a restore stays until you delete it. You can delete backups in the settings.`;

/** Backups of the database, and the move of the data folder. */
export class Backups {
  /** Newest first; null while loading. */
  copies = $state.raw<DatabaseCopy[] | null>(null);
  /** Description of the running operation, shown to the user; empty if none runs. */
  busy = $state("");
  /** Backup whose restoring or deletion awaits confirmation. */
  asked = $state.raw<{ copy: string; to: "restore" | "delete" } | null>(null);
  /** Set while the move of the data folder awaits confirmation. */
  moves = $state(false);
  /** Error of the last operation. */
  error = $state("");

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    /** Reloads the page, with a note for the user. */
    private readonly reload: (note: string) => void,
  ) {}

  async load(): Promise<void> {
    this.error = "";
    this.asked = null;
    this.moves = false;
    try {
      const copies = await this.host.listBackups();
      // A backup in progress reloads the list when it is done.
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

  async restore(copy: DatabaseCopy): Promise<void> {
    await this.#act(`Restoring ${copyName(copy)}…`, async () => {
      const kept = await this.host.restoreBackup(copy.name);
      this.reload(
        `Restored ${copyName(copy)}. Your previous chats are kept as ${kept}, and can be restored like a backup.`,
      );
    });
  }

  async remove(copy: DatabaseCopy): Promise<void> {
    this.asked = null;
    await this.#act(`Deleting ${copyName(copy)}…`, async () => {
      this.copies = await this.host.removeBackup(copy.name);
    });
  }

  async move(keep: boolean): Promise<void> {
    this.moves = false;
    await this.#act("", async () => {
      await this.host.moveDataFolder(keep);
    });
  }

  async showDataFolder(): Promise<void> {
    await this.notices.guard(this.host.showDataFolder());
  }

  async #act(busy: string, act: () => Promise<void>): Promise<void> {
    if (this.busy !== "") return;
    this.busy = busy;
    this.error = "";
    await act().catch((error: unknown) => (this.error = reason(error)));
    this.busy = "";
  }
}
