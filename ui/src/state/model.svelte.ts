import type {
  ContextOptions,
  Failure,
  Host,
  ModelInfo,
  ModelStatus,
  ModelView,
  UnopenedModel,
} from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

/** The model that answers: which one, where it runs and how it is. */
export class Model {
  status = $state.raw<ModelStatus>({ state: "none" });
  /** Why the last model that was asked for did not open. */
  error = $state.raw<Failure | null>(null);
  /** A file hovers over the window. */
  dragging = $state(false);
  /** The context lengths that the model can have, as they were found out last. */
  contexts = $state.raw<ContextOptions | null>(null);
  #dismissed = $state<string | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** The model that is open, being opened, or unloaded. */
  readonly known = $derived.by((): UnopenedModel | null =>
    this.status.state === "none" ? null : this.status.model,
  );
  /** The model that is open. */
  readonly open = $derived.by((): ModelInfo | null =>
    this.status.state === "ready" ? this.status.model : null,
  );
  /** True while the bundled model is open, being opened, or unloaded. */
  readonly isBundled = $derived.by(() => this.known?.bundledModel ?? false);
  /** Whether the settings have a larger context for it. */
  readonly contextCanGrow = $derived.by(
    () => !this.isBundled && (this.open?.contextCanGrow ?? false),
  );
  /** Whether the next message loads the model first. */
  readonly ejected = $derived.by(() => this.status.state === "ejected");

  /** What was wrong with the file that was opened last, until the person has put it aside. */
  readonly fault = $derived.by((): Failure | null =>
    this.error?.message === this.#dismissed ? null : this.error,
  );

  take({ status, error }: ModelView): void {
    if (error === null) this.#dismissed = null;
    this.status = withPlainName(status);
    this.error = error && { ...error, message: withoutBidiControls(error.message) };
  }

  dismissFault(): void {
    this.#dismissed = this.error?.message ?? null;
  }

  async pick(): Promise<void> {
    await this.notices.guard(this.host.pickModel());
  }

  /** Opens the model that the start left out. */
  async retry(): Promise<void> {
    await this.notices.guard(this.host.retryModel());
  }

  async useBundledModel(): Promise<void> {
    await this.notices.guard(this.host.useBundledModel());
  }

  /** Finds out which context lengths the model can have. */
  async readContexts(): Promise<void> {
    const contexts = await this.notices.guard(this.host.contextOptions());
    if (contexts) this.contexts = contexts;
  }
}

/** Names of files are untrusted. */
function withPlainName(status: ModelStatus): ModelStatus {
  const named = <M extends UnopenedModel>(model: M): M => ({
    ...model,
    name: withoutBidiControls(model.name),
    file: model.file && withoutBidiControls(model.file),
  });
  switch (status.state) {
    case "none":
      return status;
    case "ready":
      return { ...status, model: named(status.model) };
    case "checking":
    case "loading":
    case "ejected":
      return { ...status, model: named(status.model) };
  }
}
