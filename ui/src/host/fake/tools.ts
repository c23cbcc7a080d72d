import { FakePreferencesHost } from "./preferences";
import { refuse } from "./models";
import type {
  AllowedTool,
  Consent,
  Effects,
  PastedServer,
  ServerConfig,
  ServerList,
  ServerState,
  ServerTool,
  ToolView,
} from "../host";

const pure: Effects = { readsChats: false, readsFiles: false, changes: false, network: false };

const builtIn = (name: string, title: string, effects: Partial<Effects> = {}): ToolView => ({
  name,
  title,
  description: "",
  source: { kind: "built-in" },
  effects: { ...pure, ...effects },
});

const ofServer = (server: string, name: string, title: string, effects: Effects): ToolView => ({
  ...builtIn(name, title, effects),
  source: { kind: "server", name: server },
});

/** Initial tools. */
export const tools: ToolView[] = [
  builtIn("calculate", "Calculator"),
  builtIn("run_python", "Python"),
  builtIn("current_time", "Date and time"),
  builtIn("search_chats", "Search in chats", { readsChats: true }),
  ofServer("files", "files_read_file", "Read file", { ...pure, readsFiles: true }),
  ofServer("files", "files_write_file", "Write file", { ...pure, readsFiles: true, changes: true }),
  ofServer("weather", "weather_forecast", "Forecast", { ...pure, network: true }),
];

const config: ServerConfig = {
  name: "files",
  command: "npx",
  args: ["-y", "@modelcontextprotocol/server-filesystem", "/data/ada/Notes"],
  env: {},
  cwd: null,
  folders: [{ path: "/data/ada/Notes", writable: true }],
  network: false,
  sandboxed: true,
  enabled: true,
};

const ownTool = ({ name, title, effects, source }: ToolView): ServerTool => ({
  name,
  ownName: source.kind === "server" ? name.slice(source.name.length + 1) : name,
  title,
  description: "",
  effects,
  claimsReadOnly: !effects.changes,
  unusable: null,
  hash: "5ca1ab1e",
});

const stateOf = (config: ServerConfig): ServerState => ({
  name: config.name,
  status: { kind: "stopped" },
  tools: tools
    .filter(({ source }) => source.kind === "server" && source.name === config.name)
    .map(ownTool),
  sandbox: !config.sandboxed
    ? { kind: "none", why: "You turned it off." }
    : { kind: config.network ? "network-allowed" : "full" },
  logTail: "",
  lastError: null,
});

/** Servers of the scene `servers`. */
export const servers: ServerList = {
  configs: [
    config,
    { ...config, name: "weather", command: "weather-mcp", args: [], folders: [], network: true },
    {
      ...config,
      name: "notes",
      command: "/opt/notes/server",
      args: ["--stdio"],
      env: { NOTES_TOKEN: "" },
      sandboxed: false,
      enabled: false,
      folders: [],
    },
  ],
  states: [],
};
servers.states = servers.configs.map((each) => ({
  ...stateOf(each),
  ...(each.name === "files" && {
    status: { kind: "ready" },
    logTail: "Secure MCP Filesystem Server running on stdio\nAllowed: /data/ada/Notes\n",
    tools: [
      ...stateOf(each).tools,
      {
        ...ownTool(tools[4] as ToolView),
        name: "files_tree",
        title: "Directory tree",
        unusable: "Its description is longer than 1,024 characters.",
      },
    ],
  }),
  ...(each.name === "weather" && {
    status: { kind: "failed", reason: "weather-mcp was not found." },
    lastError: "weather-mcp was not found. Install it, or give its whole path.",
    logTail: "sh: 1: weather-mcp: not found\n",
  }),
}));

/** Tools that run without asking in the scene `servers`. */
export const allowedTools: AllowedTool[] = [
  { title: "Search in chats", fingerprint: "5ca1ab1e search_chats" },
  { title: "Read file (files)", fingerprint: "5ca1ab1e files_read_file" },
];

/** The part of the scripted host for tools, their servers and consent. */
export abstract class FakeToolHost extends FakePreferencesHost {
  toolList: ToolView[] = tools;
  servers: ServerList = { configs: [], states: [] };
  /** Receives the user's decision about a call, by its id. */
  readonly #consents = new Map<string, (consent: Consent) => void>();
  /** Tools that need no consent: in all chats, or in one, behind its id. */
  readonly #allowed = new Set<string>();

  listTools(): Promise<ToolView[]> {
    return this.reply(this.toolList);
  }

  answerCall(message: number, call: string, consent: Consent): Promise<null> {
    this.calls.push(["answerCall", message, call, consent]);
    const decide = this.#consents.get(call);
    if (!decide) return refuse("other", "This call does not wait any more.");
    this.#consents.delete(call);
    if (consent.kind === "always") this.#allow(call);
    decide(consent);
    return Promise.resolve(null);
  }

  protected isAllowed(chat: number, tool: string): boolean {
    return this.#allowed.has(tool) || this.#allowed.has(`${chat} ${tool}`);
  }

  /** Resolves to the user's decision. */
  protected async ask(chat: number, call: string): Promise<Consent> {
    const consent = await new Promise<Consent>((resolve) => this.#consents.set(call, resolve));
    const tool = call.split("-")[0] ?? "";
    if (consent.kind === "in-chat") this.#allowed.add(`${chat} ${tool}`);
    if (consent.kind === "always") this.#allowed.add(tool);
    return consent;
  }

  #allow(call: string): void {
    const tool = this.toolList.find(({ name }) => call.startsWith(name));
    const allowed = { title: tool?.title ?? call, fingerprint: `5ca1ab1e ${call}` };
    this.settings = {
      ...this.settings,
      allowedTools: [...this.settings.allowedTools, allowed],
    };
    this.emit({ type: "settingsChanged", settings: this.settings });
  }

  listServers(): Promise<ServerList> {
    return this.reply(this.servers);
  }

  saveServers(configs: ServerConfig[]): Promise<ServerList> {
    this.calls.push(["saveServers", configs]);
    const bad = configs.find(({ command }) => command.trim() === "");
    if (bad) return refuse("other", `“${bad.name}” has no command.`);
    const states = configs.map((config) => {
      const before = this.servers.states.find(({ name }) => name === config.name);
      return { ...stateOf(config), ...before, sandbox: stateOf(config).sandbox };
    });
    const hidden = configs.map((config) => ({
      ...config,
      env: Object.fromEntries(Object.keys(config.env).map((key) => [key, ""])),
    }));
    this.servers = { configs: hidden, states };
    return this.reply(this.servers);
  }

  parseServers(text: string): Promise<PastedServer[]> {
    this.calls.push(["parseServers", text]);
    let read: unknown;
    try {
      read = JSON.parse(text);
    } catch {
      return refuse("other", "This is not JSON. Copy it again, with its braces.");
    }
    const { mcpServers } = read as { mcpServers?: Record<string, Partial<ServerConfig>> };
    if (!mcpServers) return refuse("other", "There is no “mcpServers” in this JSON.");
    return this.reply(
      Object.entries(mcpServers).map(([name, given]) => ({
        config: { ...config, folders: [], args: [], ...given, name },
        suggestedFolders: (given.args ?? []).filter((each) => each.startsWith("/")),
        notes: ["“autoApprove” was left out: Goldcrest asks for each tool."],
      })),
    );
  }

  startServer(name: string): Promise<null> {
    this.calls.push(["startServer", name]);
    this.setServer(name, { status: { kind: "ready" } });
    return Promise.resolve(null);
  }

  stopServer(name: string): Promise<null> {
    this.calls.push(["stopServer", name]);
    this.setServer(name, { status: { kind: "stopped" } });
    return Promise.resolve(null);
  }

  pickServerFolder(): Promise<string | null> {
    this.calls.push(["pickServerFolder"]);
    return Promise.resolve("/data/ada/Pictures");
  }

  /** Changes the state of a server, for tests. */
  setServer(name: string, part: Partial<ServerState>): void {
    const states = this.servers.states.map((state) =>
      state.name === name ? { ...state, ...part } : state,
    );
    this.servers = { ...this.servers, states };
    this.emit({ type: "serversChanged" });
  }
}
