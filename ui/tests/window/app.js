// The app in its real window, in the words of someone who uses it: found by role and accessible name.
import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Session, until } from "./driver.js";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
/** What answers in place of the small model that comes with the app: it is in every clone, and thinks. */
export const tinyFile = join(
  root,
  "src-tauri/crates/engine/tests/fixtures/tiny-smollm3-q4_k_m.gguf",
);
const pictures = join(root, "ui", "tests", "out", "window");

export const binary =
  process.env.GOLDCREST_BINARY ?? join(root, "src-tauri", "target", "debug", "goldcrest");
if (!existsSync(binary)) throw new Error(`${binary} is not built: npm test -- window builds it`);

/** For a test that needs what only a debug build does (src-tauri/src/test_hooks.rs). */
export const hooks = {
  skip: binary.includes(join("target", "release")) && "only a debug build has test hooks",
};

/** The environment of an app whose answers are slow: with the plainest kernels one without end does not fill its context meanwhile. */
export const SLOW = { GOLDCREST_CPU: "scalar" };

/** What may have a role: its accessible name is asked of WebKit, not worked out here. */
const CANDIDATES = {
  button: "button, [role=button], summary",
  searchbox: "[type=search], [role=searchbox]",
  textbox: "textarea, input, [contenteditable], [role=textbox]",
  list: "ul, ol, [role=list]",
  combobox: "select, [role=combobox]",
  listbox: "[role=listbox]",
  log: "[role=log]",
  region: "section, details, [role=region]",
  group: "fieldset, details, [role=group]",
  dialog: "dialog[open], [role=dialog], [role=alertdialog]",
  alert: "[role=alert]",
  status: "[role=status], output",
  switch: "button, input, [role=switch]",
  menuitem: "[role=menuitem]",
  tab: "[role=tab]",
  link: "a",
  heading: "h1, h2, h3",
};

/** A folder for one app's data, gone at the end of the test. */
export function dataFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-window-"));
  t.after(async () => {
    // Where a desktop is installed, its portal has a file system mounted in here until the session has ended.
    for (const session of sessions.get(t) ?? []) session.kill();
    const isGone = () => {
      try {
        rmSync(folder, { recursive: true, force: true });
        return true;
      } catch {
        return false;
      }
    };
    // What is still in use then is left to the system: it is no fault of the app.
    await until(3000, folder, isGone).catch(() => undefined);
  });
  return folder;
}

/** The sessions of each test. */
const sessions = new WeakMap();

/** Sampling with which an answer goes on until the context is full. */
export const ENDLESS = { temperature: 5, topP: 1, topK: 0, minP: 0, repeatPenalty: 1, seed: 1 };

export class App {
  /** Opens the window and waits until its model can be asked. */
  static async open(t, display, { data = dataFolder(t), args = [], env = {}, ready = true } = {}) {
    const own = {
      GOLDCREST_DATA_DIR: data,
      XDG_DATA_HOME: join(data, "xdg-data"),
      XDG_CONFIG_HOME: join(data, "xdg-config"),
      XDG_CACHE_HOME: join(data, "xdg-cache"),
      GOLDCREST_BUNDLED_MODEL: tinyFile,
      ...env,
    };
    const app = new App(await Session.open(display, binary, args, own), data);
    sessions.set(t, [...(sessions.get(t) ?? []), app.session]);
    t.after(() => app.session.kill());
    // While the store opens there is no state to ask for.
    await app.invoke("startup");
    if (ready)
      await app.until(
        "the model to be ready",
        async () => (await app.snapshot()).model.status.state === "ready",
      );
    return app;
  }

  constructor(session, data) {
    this.session = session;
    this.data = data;
  }

  /** Waits for something; where it does not come, the error shows what the window said instead. */
  async until(what, look, limit = 20_000) {
    try {
      return await until(limit, what, look);
    } catch (error) {
      const text = await this.session
        .run("return document.body.innerText")
        .catch(() => "(no window)");
      throw new Error(`${error.message}; the window says:\n${text}\n${this.session.said}`, {
        cause: error,
      });
    }
  }

  /** Every element of this role whose accessible name is, or matches, `name`. */
  async all(role, name, inside) {
    const found = [];
    // Not WebDriver's "displayed": what appears under the pointer counts, what is not laid out does not.
    const candidates = await this.session.run(
      `return [...(arguments[1] ?? document).querySelectorAll(arguments[0])].filter(
         (element) => element.getClientRects().length && getComputedStyle(element).visibility !== "hidden")`,
      CANDIDATES[role],
      inside ?? null,
    );
    for (const element of candidates) {
      const label = await this.session.of(element, "computedlabel").catch(() => "");
      if (name instanceof RegExp ? name.test(label) : label === name) found.push(element);
    }
    return found;
  }

  /** The first of them, waited for. */
  get(role, name, inside) {
    return this.until(`${role} ${name}`, async () => (await this.all(role, name, inside))[0]);
  }

  async click(role, name, inside) {
    const element = await this.get(role, name, inside);
    // The driver does not scroll a list within the page.
    await this.session.run("arguments[0].scrollIntoView({ block: 'nearest' })", element);
    await this.session.click(element);
  }

  /** As with the Tab key; what only appears for the pointer or the keyboard then does. */
  focus(element) {
    return this.session.run("arguments[0].focus()", element);
  }

  async isThere(role, name, inside) {
    return (await this.all(role, name, inside)).length > 0;
  }

  /** The words on the screen: of the whole window, or of one element. */
  text(element) {
    return this.session.run("return (arguments[0] ?? document.body).innerText", element ?? null);
  }

  async conversation() {
    return this.text(await this.get("log", "Conversation"));
  }

  /** Types a message and sends it; returns once the app has taken it. */
  async send(text) {
    const message = await this.get("textbox", "Message");
    await this.session.type(message, text);
    await this.click("button", "Send");
    await this.until("the message to be sent", async () =>
      (await this.conversation()).includes(text),
    );
  }

  /** Sends and waits for the whole answer; returns it as stored. */
  async ask(text) {
    await this.send(text);
    return this.answered();
  }

  /** Waits until nothing is being written and returns the last message as stored. */
  async answered(limit = 60_000) {
    const message = async () => (await this.openChat())?.messages.at(-1);
    return this.until(
      "the answer to end",
      async () => {
        const last = await message();
        return last?.role === "assistant" && last.state !== "writing" && last;
      },
      limit,
    );
  }

  /** Asks the host, past the UI: to look at what is stored and to set the scene. */
  invoke(command, args = {}) {
    return this.session.runAsync(
      "return window.__TAURI_INTERNALS__.invoke(args[0], args[1])",
      command,
      args,
    );
  }

  snapshot() {
    return this.invoke("snapshot");
  }

  /** The chat that is open, as stored, or undefined. */
  async openChat() {
    const { current, chats } = await this.snapshot();
    const chat = current ?? chats[0]?.id;
    return chat === undefined ? undefined : this.invoke("open_chat", { id: chat });
  }

  /** Changes what is stored, then reloads the page, so that it starts from that. */
  async settings(change) {
    const { settings } = await this.snapshot();
    await this.invoke("save_settings", {
      settings: {
        ...settings,
        ...change,
        samplingChanges: { ...settings.samplingChanges, ...change.samplingChanges },
      },
    });
    await this.session.send("POST", "/refresh", {});
    await this.get("textbox", "Message");
  }

  /** Answers of the model that are the same each time. */
  exact(change = {}) {
    return this.settings({
      thinking: false,
      guideAnswers: false,
      ...change,
      samplingChanges: { temperature: 0, repeatPenalty: 1 },
    });
  }

  /**
   * Asks for an answer that goes on until the context is full, so that there is time to do something
   * meanwhile, where the app is {@link SLOW}: almost any token is as likely as the end.
   */
  async sendEndless(change = {}) {
    await this.settings({
      thinking: false,
      threads: 1,
      ...change,
      samplingChanges: ENDLESS,
    });
    await this.until(
      "the model to be ready",
      async () => (await this.snapshot()).model.status.state === "ready",
    );
    await this.send("Count from 1 to 500");
  }

  /** The app's process; the driver has started it below itself. */
  pid() {
    const { dev, ino } = readTarget(binary);
    const all = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    const parent = (pid) => Number(/^PPid:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0);
    const isBelow = (pid) => pid > 1 && (pid === this.session.driver.pid || isBelow(parent(pid)));
    const found = all.find((pid) => {
      const target = readTarget(`/proc/${pid}/exe`);
      return target && target.dev === dev && target.ino === ino && isBelow(Number(pid));
    });
    assert(found, "the app's process was not found");
    return Number(found);
  }

  /** The app's end without warning; its data folder is left as it was at that moment. */
  crash() {
    process.kill(this.pid(), "SIGKILL");
    this.session.kill();
  }

  /** Closes the window as a person does, and waits until the app has ended. */
  async close() {
    const pid = this.pid();
    await this.session.send("DELETE", "/window");
    await until(10_000, "the app to end", () => !existsSync(`/proc/${pid}/exe`));
    this.session.kill();
  }

  /** Ends the app in order, as the end of a session does; the driver's own way may end it without warning. */
  async end() {
    const pid = this.pid();
    process.kill(pid, "SIGTERM");
    await until(10_000, "the app to end", () => !existsSync(`/proc/${pid}/exe`));
    this.session.kill();
  }

  async picture(name) {
    mkdirSync(pictures, { recursive: true });
    // Under Xvfb WebKit paints when a picture is asked for, and hands out what it had painted before.
    await this.session.screenshot();
    await this.session.runAsync(`await new Promise((painted) => setTimeout(painted, 500))`);
    writeFileSync(join(pictures, `${name}.png`), await this.session.screenshot());
  }
}

/** A file's text; nothing where there is no such file, as when a process has gone. */
export function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function readTarget(path) {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}
