import { defaultSettings, settingNames } from "../host/defaults";
import type { Host, Overrides, SamplingSettings, Settings } from "../host/host";
import type { Notices } from "./notices.svelte";

export { settingNames };

/** Names a setting, or a value of the sampling. */
export type SettingKey = keyof typeof settingNames;

const isSampling = (key: SettingKey): key is SettingKey & keyof SamplingSettings =>
  key in defaultSettings.samplingChanges;

const SAVE_AFTER_MS = 300;
/** How large the page can be drawn, in percent. */
export const ZOOMS = [80, 90, 100, 110, 125, 150, 175, 200];

/** The person's settings: changed at once, saved shortly after. */
export class Preferences {
  value = $state.raw<Settings>(defaultSettings);
  /** The most threads that this machine has a use for. */
  maxThreads = $state(1);
  /** Settings that have no effect, because a flag or the environment goes before them. */
  overrides = $state.raw<Overrides>({ device: null, threads: null, context: null });
  #timer: ReturnType<typeof setTimeout> | undefined;
  #refused = false;
  #saving: Promise<void> | null = null;
  /** Something was changed while it was being saved. */
  #again = false;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  change(part: Partial<Settings>): void {
    this.value = { ...this.value, ...part };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#save(), SAVE_AFTER_MS);
  }

  valueOf(key: SettingKey): unknown {
    return valueIn(this.value, key);
  }

  set(key: SettingKey, value: unknown): void {
    if (isSampling(key))
      this.change({ samplingChanges: { ...this.value.samplingChanges, [key]: value } });
    else this.change({ [key]: value });
  }

  isChanged(key: SettingKey): boolean {
    return JSON.stringify(this.valueOf(key)) !== JSON.stringify(valueIn(defaultSettings, key));
  }

  /** Gives settings their first values, at once. */
  reset(keys: SettingKey[]): void {
    for (const key of keys) this.set(key, valueIn(defaultSettings, key));
    void this.flush();
  }

  /** Shows what the host has changed them to. */
  take(settings: Settings): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.value = settings;
  }

  /** Whether the chat template of the file with this fingerprint is used though its text is unknown. */
  usesOwnTemplate(fingerprint: string): boolean {
    return this.value.ownTemplates.includes(fingerprint);
  }

  useOwnTemplate(fingerprint: string, own: boolean): void {
    const others = this.value.ownTemplates.filter((each) => each !== fingerprint);
    this.change({ ownTemplates: own ? [...others, fingerprint] : others });
  }

  /** Draws the page larger (1), smaller (-1), or as it was made (0); at once, for the host does it as it saves. */
  zoom(step: 1 | -1 | 0): void {
    const { zoom } = this.value;
    const next =
      step === 1 ? ZOOMS.find((each) => each > zoom) : ZOOMS.findLast((each) => each < zoom);
    this.zoomTo(step === 0 ? 100 : (next ?? zoom));
  }

  zoomTo(zoom: number): void {
    if (zoom === this.value.zoom) return;
    this.change({ zoom });
    void this.flush();
  }

  /** Saves now what was changed and is not saved yet; comes when it is. */
  async flush(): Promise<void> {
    if (this.#timer !== undefined) this.#save();
    await this.#saving;
  }

  /** Saves once more what the host has refused. */
  resave(): void {
    if (this.#refused) this.#save();
  }

  #save(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // One after the other: the host may take up requests in another order, and keep what is older.
    if (this.#saving) this.#again = true;
    else this.#saving = this.#send();
  }

  async #send(): Promise<void> {
    do {
      this.#again = false;
      const sent = this.value;
      const saved = await this.notices.guard(this.host.saveSettings(sent));
      this.#refused = saved === null;
      if (saved && this.value === sent) this.value = saved;
    } while (this.#again);
    this.#saving = null;
  }
}

function valueIn(settings: Settings, key: SettingKey): unknown {
  return isSampling(key) ? settings.samplingChanges[key] : settings[key as keyof Settings];
}
