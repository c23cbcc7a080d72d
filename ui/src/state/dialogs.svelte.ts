import type { Host } from "../host/host";
import type { Notices } from "./notices.svelte";
import type { SettingsPage } from "./settings-pages";

export type ShownPaste = { name: string; text: string; remove: () => void };

/** Dialogs that are not part of a larger concern. */
export class Dialogs {
  /** Page of the settings that is shown, or null while they are closed. */
  settingsPage = $state<SettingsPage | null>(null);
  /** Address that the user asked to open and has yet to confirm. */
  link = $state<string | null>(null);
  /** Pasted text that is being viewed, and how to remove it. */
  paste = $state.raw<ShownPaste | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** True while one of them is open. */
  readonly open = $derived.by(
    () => this.settingsPage !== null || this.link !== null || this.paste !== null,
  );

  /** Opens the confirmed address in the browser. */
  async openLink(): Promise<void> {
    const url = this.link;
    this.link = null;
    if (url !== null) await this.notices.guard(this.host.openLink(url));
  }
}
