import { mount } from "svelte";
import App from "./App.svelte";
import type { Host } from "./host/host";
import { App as AppState } from "./state/app.svelte";
import { reason } from "./state/notices.svelte";
import "./styles/app.css";

/** The scripted host serves `npm run dev:ui` and the browser tests; it is not in the shipped app. */
async function host(): Promise<Host> {
  if (import.meta.env.MODE === "fake") {
    const { openStage } = await import("./host/fake/stage");
    return openStage(location.search);
  }
  return (await import("./host/tauri")).tauriHost;
}

/** The first words are drawn in their own font, unless it takes too long to come. */
function fonts(): Promise<unknown> {
  const loaded = ["400", "500", "620"].map((weight) =>
    document.fonts.load(`${weight} 1em "Inter Variable"`),
  );
  return Promise.race([Promise.all(loaded), new Promise((resolve) => setTimeout(resolve, 400))]);
}

const target = document.getElementById("app") ?? document.body;
const app = new AppState(await host());
try {
  await Promise.all([app.start(), fonts()]);
  mount(App, { target, props: { app } });
} catch (error) {
  // The store could not be read, say: the reason is better than an empty window.
  target.className = "not-started";
  target.textContent = `Goldcrest could not start. ${reason(error)}`;
}
