import { Channel } from "@tauri-apps/api/core";
import { commands } from "./bindings";
import type { Host } from "./host";

/** The real host: Tauri commands, and one channel for events. */
export const tauriHost: Host = {
  ...commands,
  subscribe: (listener) => commands.subscribe(new Channel(listener)),
};
