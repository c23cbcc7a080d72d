import type { commands, HostEvent } from "./bindings";

export type * from "./bindings";

/** The one door from the window to the application: every request, and every event that comes back. */
export type Host = Omit<typeof commands, "subscribe"> & {
  subscribe(listener: (event: HostEvent) => void): Promise<null>;
};
