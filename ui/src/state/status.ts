import { count, tokens } from "../text/figures";
import type { App } from "./app.svelte";

/** Says in a sentence each which model answers, on which device, and how much of its context the chat takes. */
export function showStatus(app: App): void {
  const { open, known, ejected } = app.model;
  const details = { label: "Models", run: () => app.models.show() };
  if (!open) {
    const name = known?.name ?? "No model";
    app.notices.show(`${name} is ${ejected ? "unloaded" : known ? "loading" : "open"}.`, details);
    return;
  }
  const { used } = app.context;
  app.notices.show(
    `${open.name} on ${open.device.name}. ` +
      `Context: ${count(used)} of ${tokens(open.contextLength)}. Offline: no network is used.`,
    details,
  );
}
