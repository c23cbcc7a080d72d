import { expect, test } from "vitest";
import type { ServerConfig, ServerState } from "../state/types";
import { newServer, sandboxWords } from "./server-words";

const folder = { path: "/birds", writable: false };

test.each<[Partial<ServerConfig>, ServerState["sandbox"] | null, string]>([
  [{}, null, "Sandboxed: no network, none of your folders."],
  [{ network: true, folders: [folder] }, null, "Sandboxed: the network, only the folders below."],
  [{ network: true }, { kind: "full" }, "Sandboxed: no network, none of your folders."],
  [{}, { kind: "network-allowed" }, "Sandboxed: the network, none of your folders."],
  [{ sandboxed: false }, null, "No sandbox: it can do what you can."],
  [
    {},
    { kind: "none", why: "bubblewrap is not installed." },
    "No sandbox: it can do what you can. bubblewrap is not installed.",
  ],
])("the reach of a server is what the sandbox allows: %o, %o", (config, sandbox, words) => {
  const state = sandbox ? ({ sandbox } as ServerState) : undefined;
  expect(sandboxWords({ ...newServer, ...config }, state)).toBe(words);
});
