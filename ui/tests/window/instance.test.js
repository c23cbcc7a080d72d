import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, binary, tinyFile, SLOW } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/**
 * Starts a second instance with the same data, display and D-Bus session, and waits until it exits.
 */
async function startAgain(t, app, args, cwd) {
  const first = app.pid();
  const variables = readFileSync(`/proc/${first}/environ`, "utf8").split("\0").filter(Boolean);
  const env = Object.fromEntries(
    variables.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
  delete env.WEBKIT_INSPECTOR_SERVER;
  delete env.TAURI_WEBVIEW_AUTOMATION;
  const second = spawn(binary, args, { cwd, env, stdio: "ignore" });
  t.after(() => second.kill("SIGKILL"));
  const [status] = await once(second, "exit", { signal: AbortSignal.timeout(15_000) });
  assert.equal(status, 0);
  assert.equal(app.pid(), first);
}

test("a second start ends, and the first window stays", async (t) => {
  const app = await App.open(t, display);
  await startAgain(t, app, []);
  assert.equal((await app.snapshot()).model.status.state, "ready");
});

test("a file that a second start is given is opened in the first window", async (t) => {
  const app = await App.open(t, display);
  const model = async () => {
    const { status } = (await app.snapshot()).model;
    return { ...status.model, state: status.state };
  };
  // Relative path, as typed in the folder of the file.
  copyFileSync(tinyFile, join(app.data, "second start.gguf"));
  await startAgain(t, app, ["second start.gguf"], app.data);
  const opened = await app.until("the file to be opened", async () => {
    const now = await model();
    return now.state === "ready" && !now.bundledModel && now;
  });
  assert.equal(opened.file, join(app.data, "second start.gguf"));
});

test("on another session bus a second start says so, and does not touch the chats", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await app.sendEndless();
  const written = async () => (await app.openChat())?.messages.at(-1);
  await app.until("some of the answer", async () => (await written())?.text.length > 40);
  // Each session of the driver has its own D-Bus.
  const second = await App.open(t, display, {
    data: app.data,
    ready: false,
  });
  await second.get("button", "Try again");
  assert.match(await second.text(), /Goldcrest is open already/);
  assert.equal((await written()).state, "writing", "the first one's answer goes on");
  await second.picture("in-use");
  await app.close();
  await second.click("button", "Try again");
  await second.get("textbox", "Message");
});
