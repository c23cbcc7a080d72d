import type { ApiChange, ApiState, ApiStatus, NetworkCheck } from "../host";
import { refuse } from "./models";
import { FakeToolHost } from "./tools";

const START_MS = 200;
/** Port that another program has. */
const TAKEN_PORT = 9999;

const initial: ApiState = {
  on: false,
  port: 8484,
  origins: [],
  hasKey: false,
  status: { kind: "off" },
};

const listening = (port: number, running = 0, waiting = 0): ApiStatus => ({
  kind: "listening",
  baseUrl: `http://127.0.0.1:${port}/v1`,
  running,
  waiting,
});

const taken = (port: number): ApiStatus => ({
  kind: "failed",
  message: `Port ${port} is in use by another program. Choose another port.`,
});

/** State of the scene `api`. */
export const apiListening: ApiState = {
  ...initial,
  on: true,
  origins: ["http://localhost:3000"],
  hasKey: true,
  status: listening(8484, 2, 1),
};

/** State of the scene `api-failed`. */
export const apiFailed: ApiState = { ...apiListening, port: TAKEN_PORT, status: taken(TAKEN_PORT) };

/** The part of the scripted host for the local API. */
export abstract class FakeApiHost extends FakeToolHost {
  protected api: ApiState = initial;
  #keys = 0;

  apiState(): Promise<ApiState> {
    return this.reply(this.api);
  }

  setApi(on: boolean, port: number, origins: string[]): Promise<ApiChange> {
    this.calls.push(["setApi", on, port, origins]);
    if (port < 1024 || port > 65_535)
      return refuse("other", "The port has to be between 1024 and 65535.");
    const bad = origins.find((origin) => !/^[a-z][a-z\d+.-]*:\/\/[^/]+$/iu.test(origin));
    if (bad !== undefined) return refuse("other", `“${bad}” is not the address of a web site.`);
    const { hasKey, status } = this.api;
    const goesOn = on && port === this.api.port && status.kind === "listening";
    const starts = on && !goesOn;
    this.#change({
      on,
      port,
      origins,
      hasKey: hasKey || on,
      status: goesOn ? status : { kind: starts ? "starting" : "off" },
    });
    if (starts) setTimeout(() => this.#start(port), START_MS);
    return this.reply({ state: this.api, newKey: on && !hasKey ? this.#key() : null });
  }

  replaceApiKey(): Promise<ApiChange> {
    this.calls.push(["replaceApiKey"]);
    this.#change({ hasKey: true });
    return this.reply({ state: this.api, newKey: this.#key() });
  }

  override async checkNetwork(): Promise<NetworkCheck> {
    const check = await super.checkNetwork();
    const { port, status } = this.api;
    if (check.type !== "counted" || status.kind !== "listening") return check;
    check.processes.push({
      pid: 4110,
      name: "goldcrest-serve",
      role: "api",
      readable: true,
      network: [`TCP, listens on 127.0.0.1:${port}`, `TCP, listens on [::1]:${port}`],
      local: 2,
      kernel: 0,
      unconnected: 0,
    });
    return check;
  }

  /** Changes the numbers of requests, for tests. */
  setApiRequests(running: number, waiting: number): void {
    this.#change({ status: listening(this.api.port, running, waiting) });
  }

  #start(port: number): void {
    if (this.api.status.kind !== "starting" || this.api.port !== port) return;
    this.#change({ status: port === TAKEN_PORT ? taken(port) : listening(port) });
  }

  #change(part: Partial<ApiState>): void {
    this.api = { ...this.api, ...part };
    this.emit({ type: "apiChanged", state: this.api });
  }

  #key(): string {
    this.#keys += 1;
    return `goldcrest-${`${this.#keys}`.repeat(8)}Qb3nYc8xWm5tLk2vZr9d`;
  }
}
