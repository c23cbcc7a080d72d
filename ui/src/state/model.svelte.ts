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

/** The model that answers, its device and its state. */
export class Model {
  status = $state.raw<ModelStatus>({ state: "none" });
  /** Error of the last attempt to open a model. */
  error = $state.raw<Failure | null>(null);
  /** Set while a file is dragged over the window. */
  dragging = $state(false);
  /** Possible context lengths, as last read. */
  contexts = $state.raw<ContextOptions | null>(null);
  #dismissed = $state<string | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Model that is open, being opened or unloaded. */
  readonly known = $derived.by((): UnopenedModel | null =>
    this.status.state === "none" ? null : this.status.model,
  );
  /** Open model. */
  readonly open = $derived.by((): ModelInfo | null =>
    this.status.state === "ready" ? this.status.model : null,
  );
  /** True while the bundled model is open, being opened or unloaded. */
  readonly isBundled = $derived.by(() => this.known?.bundledModel ?? false);
  /** True if the settings offer a larger context for this model. */
  readonly contextCanGrow = $derived.by(
    () => !this.isBundled && (this.open?.contextCanGrow ?? false),
  );
  /** True if the model is unloaded, so that the next message loads it first. */
  readonly ejected = $derived.by(() => this.status.state === "ejected");

  /** Error of the last file that was opened, until it is dismissed. */
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

  /** Opens the model that was skipped at startup. */
  async retry(): Promise<void> {
    await this.notices.guard(this.host.retryModel());
  }

  async useBundledModel(): Promise<void> {
    await this.notices.guard(this.host.useBundledModel());
  }

  /** Reads the possible context lengths of the model. */
  async readContexts(): Promise<void> {
    const contexts = await this.notices.guard(this.host.contextOptions());
    if (contexts) this.contexts = contexts;
  }
}

/** File names are untrusted. */
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
