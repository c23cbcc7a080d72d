import type { Host, Sampling, Settings } from "../host/host";
import type { Notices } from "./notices.svelte";

const SAVE_AFTER_MS = 300;

export const standard: Settings = {
  theme: "system",
  device: "auto",
  threads: null,
  contextLength: null,
  kvType: "f16",
  ownTemplates: [],
  sampling: {
    temperature: null,
    topP: null,
    topK: null,
    minP: null,
    repeatPenalty: null,
    seed: null,
  },
  maxTokens: null,
  lookup: true,
  instructions: "",
  thinking: true,
  sendWith: "enter",
  showStats: true,
};

/** The person's settings: changed at once, saved shortly after. */
export class Preferences {
  value = $state.raw<Settings>(standard);
  /** The most threads that this machine has a use for. */
  maxThreads = $state(1);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  change(part: Partial<Settings>): void {
    this.value = { ...this.value, ...part };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#save(), SAVE_AFTER_MS);
  }

  /** Whether the chat template of the file with this fingerprint is used though its text is unknown. */
  usesOwnTemplate(fingerprint: string): boolean {
    return this.value.ownTemplates.includes(fingerprint);
  }

  useOwnTemplate(fingerprint: string, own: boolean): void {
    const others = this.value.ownTemplates.filter((each) => each !== fingerprint);
    this.change({ ownTemplates: own ? [...others, fingerprint] : others });
  }

  sample(part: Partial<Sampling>): void {
    this.change({ sampling: { ...this.value.sampling, ...part } });
  }

  /** Saves now what was changed and is not saved yet. */
  flush(): void {
    if (this.#timer !== undefined) void this.#save();
  }

  async #save(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const sent = this.value;
    const saved = await this.notices.guard(this.host.saveSettings(sent));
    if (saved && this.value === sent) this.value = saved;
  }
}
