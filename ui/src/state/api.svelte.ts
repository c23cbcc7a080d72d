import type { ApiChange, ApiState, Host } from "../host/host";
import { type Notices, reason } from "./notices.svelte";
import { Sequence } from "./sequence";

type Choice = Pick<ApiState, "on" | "port" | "origins">;

/** The local API: its state, and its key for as long as it is shown. */
export class Api {
  state = $state.raw<ApiState>({
    on: false,
    port: 8484,
    origins: [],
    hasKey: false,
    status: { kind: "off" },
  });
  /** Key that was just made, which the host shows only once. */
  newKey = $state<string | null>(null);
  readonly #requests = new Sequence();
  #events = 0;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Address for programs, also before it listens. */
  readonly baseUrl = $derived.by(() => {
    const { status, port } = this.state;
    return status.kind === "listening" ? status.baseUrl : `http://127.0.0.1:${port}/v1`;
  });

  /** True while it has a socket open, or is about to. */
  readonly isOpen = $derived.by(() => ["starting", "listening"].includes(this.state.status.kind));

  async refresh(): Promise<void> {
    const before = this.#events;
    const state = await this.notices.guard(this.host.apiState());
    if (state && this.#events === before) this.state = state;
  }

  receive(state: ApiState): void {
    this.#events += 1;
    this.state = state;
  }

  /** Changes a part of it. Resolves to the reason of a refusal. */
  async change(part: Partial<Choice>): Promise<string | null> {
    try {
      await this.#request(() => {
        const { on, port, origins } = { ...this.state, ...part };
        return this.host.setApi(on, port, origins);
      });
      return null;
    } catch (error) {
      return reason(error);
    }
  }

  /** Replaces the key. The old one stops working at once. */
  async replaceKey(): Promise<void> {
    await this.notices.guard(this.#request(() => this.host.replaceApiKey()));
  }

  /** Drops the shown key. */
  dropKey(): void {
    this.newKey = null;
  }

  #request(send: () => Promise<ApiChange>): Promise<void> {
    return this.#requests.run(async () => {
      const before = this.#events;
      const { state, newKey } = await send();
      // Events tell the status in order; the reply may be older than one of them.
      const { status } = this.#events === before ? state : this.state;
      this.state = { ...state, status };
      if (newKey !== null) this.newKey = newKey;
    });
  }
}
