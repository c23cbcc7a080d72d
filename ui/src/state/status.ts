import { count, tokens } from "../text/figures";
import type { App } from "./app.svelte";

/** Shows the model, its device, the use of its context, and the number of network connections. */
export async function showStatus(app: App): Promise<void> {
  const words = modelWords(app);
  await app.privacy.check();
  const { connections } = app.privacy;
  const network = connections === null ? "" : ` Network connections: ${count(connections)}.`;
  app.notices.show(words + network, {
    label: "Models",
    run: () => app.models.show(),
  });
}

function modelWords({ model, context }: App): string {
  const { open, known, ejected } = model;
  if (!open)
    return `${known?.name ?? "No model"} is ${ejected ? "unloaded" : known ? "loading" : "open"}.`;
  return (
    `${open.name} on ${open.device.name}. ` +
    `Context: ${count(context.used)} of ${tokens(open.contextLength)}.`
  );
}
