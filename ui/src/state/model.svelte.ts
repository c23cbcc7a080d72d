import type { Host, ModelStatus, WireError } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

/** The model that answers: which one, where it runs and how it is. */
export class Model {
  status = $state.raw<ModelStatus>({
    state: "none",
    name: "",
    file: null,
    demoModel: false,
    quantisation: "",
    sizeMb: 0,
    contextLength: 0,
    contextCanGrow: false,
    contextNote: null,
    kvMb: 0,
    fingerprint: "",
    template: null,
    device: null,
    progress: 0,
    error: null,
    canThink: false,
    sampling: { temperature: 0.6, topP: 0.95, topK: 0, minP: 0, repeatPenalty: 1 },
  });
  /** A file hovers over the window. */
  dragging = $state(false);
  /** The card with what is known of the model is open. */
  cardOpen = $state(false);
  #dismissed = $state<string | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** What was wrong with the file that was opened last, until the person has put it aside. */
  readonly fault = $derived.by((): WireError | null => {
    const { error } = this.status;
    return error?.message === this.#dismissed ? null : error;
  });

  take(status: ModelStatus): void {
    if (status.error === null) this.#dismissed = null;
    // A stranger's file is called what its maker likes.
    const { name, file, error } = status;
    this.status = {
      ...status,
      name: withoutBidiControls(name),
      file: file && withoutBidiControls(file),
      error: error && { ...error, message: withoutBidiControls(error.message) },
    };
  }

  dismissFault(): void {
    this.#dismissed = this.status.error?.message ?? null;
  }

  async pick(): Promise<void> {
    await this.notices.guard(this.host.pickModel());
  }

  /** Opens the model that the start left out. */
  async retry(): Promise<void> {
    await this.notices.guard(this.host.retryModel());
  }

  async useDemoModel(): Promise<void> {
    await this.notices.guard(this.host.useDemoModel());
  }
}
