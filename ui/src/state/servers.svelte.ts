import type { Host, PastedServer, ServerConfig, ServerList, ServerState } from "../host/host";
import { harmlessName } from "../text/tool-texts";
import { reason, type Notices } from "./notices.svelte";

/** The MCP servers: their configurations and states. */
export class Servers {
  configs = $state.raw<ServerConfig[]>([]);
  states = $state.raw<ServerState[]>([]);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  /** Names of the servers that may use the network. */
  readonly networked = $derived.by(() =>
    this.configs
      .filter(({ enabled, network, sandboxed, name }) => {
        const hasNoSandbox = !sandboxed || this.stateOf(name)?.sandbox.kind === "none";
        return enabled && (network || hasNoSandbox);
      })
      .map(({ name }) => harmlessName(name)),
  );
  /** Sentence on these servers; empty if there are none. */
  readonly networkWords = $derived.by(() => {
    const names = this.networked.map((name) => `“${name}”`);
    const last = names.pop();
    if (last === undefined) return "";
    return `${names.length > 0 ? `${names.join(", ")} and ` : ""}${last} may use the network.`;
  });

  stateOf(name: string): ServerState | undefined {
    return this.states.find((state) => state.name === name);
  }

  async refresh(): Promise<void> {
    this.#take(await this.notices.guard(this.host.listServers()));
  }

  /** Saves a server in place of `before`, or adds it. Resolves to the reason of a refusal. */
  put(server: ServerConfig, before: string | null): Promise<string | null> {
    const { configs } = this;
    const isTaken = configs.some(({ name }) => name === server.name && name !== before);
    if (isTaken) return Promise.resolve(`There is already a server “${server.name}”.`);
    return this.#save(
      before === null
        ? [...configs, server]
        : configs.map((each) => (each.name === before ? server : each)),
    );
  }

  /** Removes a server. Offers to add it again, unless it has stored values, which are lost. */
  async remove(server: ServerConfig): Promise<void> {
    const refused = await this.#save(this.configs.filter(({ name }) => name !== server.name));
    if (refused !== null) {
      this.notices.fail({ code: "other", message: refused });
      return;
    }
    const said = `Removed “${harmlessName(server.name)}”`;
    if (Object.keys(server.env).length > 0) this.notices.show(said);
    else this.notices.show(said, { label: "Undo", run: () => void this.put(server, null) });
  }

  /** Reads servers from JSON. Rejects with the reason if there are none. */
  parse(text: string): Promise<PastedServer[]> {
    return this.host.parseServers(text);
  }

  start(name: string): Promise<unknown> {
    return this.notices.guard(this.host.startServer(name));
  }

  stop(name: string): Promise<unknown> {
    return this.notices.guard(this.host.stopServer(name));
  }

  /** Folder that the user chooses; null if the dialog was closed. */
  pickFolder(): Promise<string | null> {
    return this.notices.guard(this.host.pickServerFolder());
  }

  async #save(configs: ServerConfig[]): Promise<string | null> {
    try {
      this.#take(await this.host.saveServers(configs));
      return null;
    } catch (error) {
      return reason(error);
    }
  }

  #take(list: ServerList | null): void {
    if (!list) return;
    this.configs = list.configs;
    this.states = list.states;
  }
}
