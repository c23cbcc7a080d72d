import { defaultSettings, parameters, settingNames } from "../host/defaults";
import type { Host, Overrides, SamplingSettings, Settings } from "../host/host";
import { Delayed } from "./delayed";
import type { Notices } from "./notices.svelte";

export { parameters, settingNames };

/** Names a setting, or a value of the sampling. */
export type SettingKey = keyof typeof settingNames;

const isSampling = (key: SettingKey): key is SettingKey & keyof SamplingSettings =>
  key in defaultSettings.samplingChanges;

/** Undo leaves these as they are: each has a way back of its own. */
const isOfTheWindow = (key: SettingKey): boolean => key === "theme" || key === "zoom";

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
  #refused = false;
  /** What the host has. */
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

  /** Gives settings their default values, at once; says so of `what`. */
  async reset(keys: SettingKey[], what?: string): Promise<void> {
    // What was changed just before is undone by itself.
    await this.flush();
    for (const key of keys) this.set(key, valueIn(defaultSettings, key));
    await this.flush();
    if (what === undefined) return;
    if (keys.every(isOfTheWindow)) this.notices.show(`Reset: ${what}`);
    else this.notices.changed(`reset: ${what}`);
  }

  /** Shows what the host has changed them to. */
  take(settings: Settings): void {
    this.value = this.#saved = settings;
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
  flush(): Promise<void> {
    return this.#saving.flush();
  }

  /** Saves once more what the host has refused. */
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
