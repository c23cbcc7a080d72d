import type { Host, ModelCheck } from "../host/host";
import { reason, type Notices } from "./notices.svelte";

/** Comparison of a model with an independent implementation, one at a time. */
export class ModelChecking {
  /** Progress or result; null before the first check. */
  check = $state.raw<ModelCheck | null>(null);
  /** Checked model: its fingerprint, or its id in the list of models. */
  #subject = $state<string | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly running = $derived(this.check?.state === "running");

  take(check: ModelCheck): void {
    this.check = check;
  }

  /** Check of this model, or null. */
  of(subject: string): ModelCheck | null {
    return this.#subject === subject ? this.check : null;
  }

  /** Checks a model of the list, or the open one. */
  async start(subject: string, id: string | null = null): Promise<void> {
    this.#subject = subject;
    this.check = { state: "running", step: "loading", done: 0, total: 0 };
    let refused: ModelCheck | null = null;
    const begun = await this.host.checkModel(id).catch((error: unknown) => {
      refused = { state: "failed", message: reason(error) };
      return false;
    });
    if (!begun && this.#subject === subject) this.check = refused;
  }

  async stop(): Promise<void> {
    await this.notices.guard(this.host.stopModelCheck());
  }
}
