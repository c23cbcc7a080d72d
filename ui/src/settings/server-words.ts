import type { ServerConfig, ServerState } from "../state/types";
import { harmless, harmlessName } from "../text/tool-texts";

/** Status of a server, with its reason. */
export function statusWords(state: ServerState | undefined): string {
  const { status } = state ?? {};
  switch (status?.kind) {
    case "starting":
      return "Starting…";
    case "ready":
      return "Running";
    case "failed":
      return `Did not start: ${harmless(status.reason)}`;
    case "ended":
      return `Ended: ${harmless(status.reason)}`;
    default:
      return "Stopped";
  }
}

/** Reach of a server. */
export function sandboxWords(
  { folders, network, sandboxed }: ServerConfig,
  state: ServerState | undefined,
): string {
  const { sandbox } = state ?? {};
  if (sandbox?.kind === "none") return `No sandbox: it can do what you can. ${sandbox.why}`;
  if (!sandboxed) return "No sandbox: it can do what you can.";
  const reach = folders.length > 0 ? "only the folders below" : "none of your folders";
  const hasNetwork = sandbox ? sandbox.kind === "network-allowed" : network;
  return `Sandboxed: ${hasNetwork ? "the network" : "no network"}, ${reach}.`;
}

/** Command of a server in one line. */
export const commandLine = ({ command, args }: ServerConfig): string =>
  harmlessName([command, ...args].join(" "));

/** Server of the form for a new one. */
export const newServer: ServerConfig = {
  name: "",
  command: "",
  args: [],
  env: {},
  cwd: null,
  folders: [],
  network: false,
  sandboxed: true,
  enabled: true,
};
