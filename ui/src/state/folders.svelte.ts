import type { ChatSummary, Folder, Host } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

/** Folders in the user's order, updated by events of the host. */
export class Folders {
  list = $state.raw<Folder[]>([]);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  take(folders: Folder[]): void {
    this.list = folders.map((folder) => ({ ...folder, name: withoutBidiControls(folder.name) }));
  }

  find(id: number | null): Folder | undefined {
    return this.list.find((folder) => folder.id === id);
  }

  /** Creates a folder for some chats. Resolves to its id, or to null if the name is refused. */
  async create(name: string, chats: ChatSummary[]): Promise<number | null> {
    const ids = chats.map(({ id }) => id);
    const created = await this.notices.guard(this.host.createFolder(name, ids));
    if (created !== null && ids.length > 0)
      this.notices.changed(`moved to a new folder, “${name.trim()}”`);
    return created;
  }

  /** Returns false if the host refuses the name. */
  async rename(folder: Folder, name: string): Promise<boolean> {
    const trimmed = name.trim();
    if (trimmed === "" || trimmed === folder.name) return true;
    const renamed = this.host.renameFolder(folder.id, trimmed).then(() => true);
    return (await this.notices.guard(renamed)) ?? false;
  }

  async remove(folder: Folder): Promise<void> {
    const done = await this.notices.guard(this.host.deleteFolder(folder.id));
    if (done !== null) this.notices.changed(`${done}; its chats are still here`);
  }

  /** Moves a folder to another index. */
  async move(folder: Folder, to: number): Promise<void> {
    if (to < 0 || to >= this.list.length) return;
    await this.notices.guard(this.host.moveFolder(folder.id, to));
  }

  async collapse(folder: Folder, collapsed: boolean): Promise<void> {
    if (folder.collapsed === collapsed) return;
    await this.notices.guard(this.host.collapseFolder(folder.id, collapsed));
  }

  /** Unused name for a new folder. */
  freeName(): string {
    const taken = new Set(this.list.map(({ name }) => name.toLowerCase()));
    for (let at = 1; ; at++) {
      const name = at === 1 ? "New folder" : `New folder ${at}`;
      if (!taken.has(name.toLowerCase())) return name;
    }
  }
}
