import { mount } from "svelte";
import App from "./App.svelte";
import type { Host } from "./host/host";
import { App as AppState } from "./state/app.svelte";
import "./styles/app.css";

/** The scripted host serves `npm run dev:ui` and the browser tests; it is not in the shipped app. */
async function host(): Promise<Host> {
  if (import.meta.env.MODE === "fake") {
    const { openStage } = await import("./host/fake/stage");
    return openStage(location.search);
  }
  return (await import("./host/tauri")).tauriHost;
}

const app = new AppState(await host());
await app.start();
const target = document.getElementById("app");
if (target) mount(App, { target, props: { app } });
