import type { Host, ModelCheck } from "../host/host";
import type { Notices } from "./notices.svelte";

/** The comparison of the open model with an independent program: one at a time. */
export class ModelChecking {
  /** How far it is; none before the first. */
  check = $state.raw<ModelCheck | null>(null);
  /** The model that it is about. */
  #fingerprint = $state<string | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly running = $derived(this.check?.state === "running");

  take(check: ModelCheck): void {
    this.check = check;
  }

  /** What is known of the model of this fingerprint. */
  of(fingerprint: string): ModelCheck | null {
    return this.#fingerprint === fingerprint ? this.check : null;
  }

  async start(fingerprint: string): Promise<void> {
    this.#fingerprint = fingerprint;
    this.check = { state: "running", step: "loading", done: 0, total: 0 };
    const started = await this.notices.guard(this.host.checkModel());
    if (started === null) this.check = null;
  }

  async stop(): Promise<void> {
    await this.notices.guard(this.host.stopModelCheck());
  }
}
