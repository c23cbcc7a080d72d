import { mount, unmount } from "svelte";
import App from "./App.svelte";
import type { Host, StartState } from "./host/host";
import RecoveryView from "./recovery/RecoveryView.svelte";
import { App as AppState } from "./state/app.svelte";
import { reason } from "./state/notices.svelte";
import { Recovery } from "./state/recovery.svelte";
import "./styles/app.css";

/**
 * Opens the host. The scripted one is for `npm run dev:ui` and the browser tests, and is not in the
 * shipped app.
 */
async function openHost(): Promise<Host> {
  if (import.meta.env.MODE === "fake") {
    const { openStage } = await import("./host/fake/stage");
    return openStage(location.search);
  }
  return (await import("./host/tauri")).tauriHost;
}

/** Loads the fonts of the first screen, with a time limit. */
function fonts(): Promise<unknown> {
  const loaded = ["400", "500", "620"].map((weight) =>
    document.fonts.load(`${weight} 1em "Inter Variable"`),
  );
  return Promise.race([Promise.all(loaded), new Promise((resolve) => setTimeout(resolve, 400))]);
}

const OPENING = "Opening your chats… After an update of Goldcrest this can take a minute.";

/** Waits for the start of the app, and shows a text if that takes long. */
async function opened(host: Host, target: HTMLElement): Promise<StartState> {
  // Screen readers announce its changes.
  target.setAttribute("role", "status");
  const slow = setTimeout(() => {
    target.className = "not-started";
    target.textContent = OPENING;
  }, 600);
  try {
    return await host.startup();
  } finally {
    clearTimeout(slow);
    target.className = "";
    target.removeAttribute("role");
    target.textContent = "";
  }
}

/**
 * Shows the recovery view after a failed start, until the app has started. Returns a note for the
 * user, if there is one.
 */
async function recover(host: Host, target: HTMLElement): Promise<string | null> {
  const startup = await opened(host, target);
  if (startup.type === "ready") return null;
  const recovery = new Recovery(host, startup);
  await fonts();
  const view = mount(RecoveryView, { target, props: { recovery } });
  const note = await recovery.started;
  await unmount(view);
  return note;
}

/** Note passed on by the last reload. */
function noteBefore(): string | null {
  const { note = null } = (history.state ?? {}) as { note?: string | null };
  history.replaceState(null, "");
  return note;
}

const target = document.getElementById("app") ?? document.body;
try {
  const host = await openHost();
  const note = (await recover(host, target)) ?? noteBefore();
  const app = new AppState(host);
  await Promise.all([app.start(), fonts()]);
  mount(App, { target, props: { app } });
  if (note !== null) app.notices.show(note);
} catch (error) {
  // For example, the database could not be read: better an error than an empty window.
  target.className = "not-started";
  target.setAttribute("role", "alert");
  target.textContent = `Goldcrest could not start. ${reason(error)}`;
}
