import { defaultSettings, parameters, settingNames } from "../host/defaults";
import type { Host, Overrides, SamplingSettings, Settings } from "../host/host";
import { Delayed } from "./delayed";
import type { Notices } from "./notices.svelte";

export { parameters, settingNames };

/** Name of a setting or of a sampling value. */
export type SettingKey = keyof typeof settingNames;

const isSampling = (key: SettingKey): key is SettingKey & keyof SamplingSettings =>
  key in defaultSettings.samplingChanges;

/** Returns true for settings that undo skips: each has its own way back. */
const isOfTheWindow = (key: SettingKey): boolean => key === "theme" || key === "zoom";

const SAVE_AFTER_MS = 300;
/** Zoom levels of the page, in percent. */
export const ZOOMS = [80, 90, 100, 110, 125, 150, 175, 200];

/** The user's settings: applied at once, saved after a debounce delay. */
export class Preferences {
  value = $state.raw<Settings>(defaultSettings);
  /** Useful maximum of threads on this machine. */
  maxThreads = $state(1);
  /** Values from the command line or the environment, which take precedence over the settings. */
  overrides = $state.raw<Overrides>({ device: null, threads: null, context: null });
  #refused = false;
  /** Settings as the host last saved them. */
  #saved: Settings | null = null;
  readonly #saving = new Delayed(SAVE_AFTER_MS);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  change(part: Partial<Settings>): void {
    this.value = { ...this.value, ...part };
    this.#saving.run(() => this.#save());
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

  /** Resets settings to their defaults at once. `what`: label for the notice. */
  async reset(keys: SettingKey[], what?: string): Promise<void> {
    // Earlier changes get an undo step of their own.
    await this.flush();
    for (const key of keys) this.set(key, valueIn(defaultSettings, key));
    await this.flush();
    if (what === undefined) return;
    if (keys.every(isOfTheWindow)) this.notices.show(`Reset: ${what}`);
    else this.notices.changed(`reset: ${what}`);
  }

  /** Applies a change made by the host. */
  take(settings: Settings): void {
    this.value = this.#saved = settings;
  }

  /**
   * Zooms the page in (1), out (-1) or to its default (0). Not debounced, since the host zooms when
   * it saves.
   */
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

  /** Saves pending changes now. Resolves once they are saved. */
  flush(): Promise<void> {
    return this.#saving.flush();
  }

  /** Retries changes that the host has refused. */
  resave(): void {
    if (!this.#refused) return;
    this.#saving.run(() => this.#save());
    void this.flush();
  }

  async #save(): Promise<void> {
    const sent = this.value;
    if (sent === this.#saved) return;
    const saved = await this.notices.guard(this.host.saveSettings(sent));
    this.#refused = saved === null;
    if (saved === null) return;
    this.#saved = sent;
    if (this.value === sent) this.take(saved);
  }
}

function valueIn(settings: Settings, key: SettingKey): unknown {
  return isSampling(key) ? settings.samplingChanges[key] : settings[key as keyof Settings];
}
