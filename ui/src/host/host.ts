import type { commands, HostEvent } from "./bindings";

export type * from "./bindings";

/** The interface between the window and the application: all requests and events. */
export type Host = Omit<typeof commands, "subscribe"> & {
  subscribe(listener: (event: HostEvent) => void): Promise<null>;
};
