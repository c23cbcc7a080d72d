// Drives the app in its real window as a user would: elements are found by role and accessible
// name.
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
/** Model used in place of the bundled one. It is part of the repository, and can think. */
export const tinyFile = join(
  root,
  "src-tauri/crates/engine/tests/fixtures/tiny-smollm3-q4_k_m.gguf",
);
const pictures = join(root, "ui", "tests", "out", "window");

export const binary =
  process.env.GOLDCREST_BINARY ?? join(root, "src-tauri", "target", "debug", "goldcrest");
if (!existsSync(binary)) throw new Error(`${binary} is not built: npm test -- window builds it`);

/** Skips tests that need the hooks of a debug build (src-tauri/src/test_hooks.rs). */
export const hooks = {
  skip: binary.includes(join("target", "release")) && "only a debug build has test hooks",
};

/**
 * Environment in which answers are slow: with the scalar kernels an endless answer does not fill
 * its context during a test.
 */
export const SLOW = { GOLDCREST_CPU: "scalar" };

/** Selectors of elements that may have a role. The accessible name comes from WebKit. */
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

/**
 * Script that finds the elements of a selector that have a layout and whose naming texts contain
 * all words. This filter is cheap, while WebKit takes milliseconds to compute an accessible name.
 * Unlike WebDriver's "displayed", elements that appear on hover count.
 */
const CANDIDATES_NAMED = `
  const [selector, words, inside] = arguments;
  const own = (element) =>
    [element.ariaLabel, element.dataset.tip, element.alt, element.placeholder, element.value].join(" ");
  const naming = (element) => {
    const ids = element.getAttribute("aria-labelledby")?.split(" ") ?? [];
    const labels = [...(element.labels ?? []), ...ids.map((id) => document.getElementById(id))];
    return [element, ...labels]
      .filter(Boolean)
      .flatMap((each) => [own(each), each.textContent, ...[...each.querySelectorAll("*")].map(own)])
      .join(" ");
  };
  return [...(inside ?? document).querySelectorAll(selector)].filter((element) => {
    if (!element.getClientRects().length || getComputedStyle(element).visibility === "hidden") return false;
    const text = words.length > 0 ? naming(element) : "";
    return words.every((word) => text.includes(word));
  });`;

/** Creates a data folder that is removed after the test. */
export function dataFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-window-"));
  t.after(async () => {
    // On a desktop, its portal may have a file system mounted here until the session ends.
    for (const session of sessions.get(t) ?? []) session.kill();
    const isGone = () => {
      try {
        rmSync(folder, { recursive: true, force: true });
        return true;
      } catch {
        return false;
      }
    };
    // Files still in use are left to the system: not a fault of the app.
    await until(3000, folder, isGone).catch(() => undefined);
  });
  return folder;
}

/** Sessions by test. */
const sessions = new WeakMap();

/** Sampling with which an answer continues until the context is full. */
export const ENDLESS = { temperature: 5, topP: 1, topK: 0, minP: 0, repeatPenalty: 1, seed: 1 };

export class App {
  /** Opens the window and waits until the model is ready. */
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
    // There is no state before the store is open.
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

  /** Waits for a condition. On a timeout, the error shows the text of the window. */
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

  /** Elements with this role and an accessible name that equals or matches `name`. */
  async all(role, name, inside) {
    const found = [];
    const candidates = await this.session.run(
      CANDIDATES_NAMED,
      CANDIDATES[role],
      typeof name === "string" ? name.split(" ") : [],
      inside ?? null,
    );
    for (const element of candidates) {
      const label = await this.session.of(element, "computedlabel").catch(() => "");
      if (name instanceof RegExp ? name.test(label) : label === name) found.push(element);
    }
    return found;
  }

  /** Waits for the first such element. */
  get(role, name, inside) {
    return this.until(`${role} ${name}`, async () => (await this.all(role, name, inside))[0]);
  }

  async click(role, name, inside) {
    const element = await this.get(role, name, inside);
    // The driver does not scroll lists within the page.
    await this.session.run("arguments[0].scrollIntoView({ block: 'nearest' })", element);
    await this.session.click(element);
  }

  /** Focuses an element, which may then appear. */
  focus(element) {
    return this.session.run("arguments[0].focus()", element);
  }

  async isThere(role, name, inside) {
    return (await this.all(role, name, inside)).length > 0;
  }

  /** Visible text of the window or of an element. */
  text(element) {
    return this.session.run("return (arguments[0] ?? document.body).innerText", element ?? null);
  }

  async conversation() {
    return this.text(await this.get("log", "Conversation"));
  }

  /** Types a message and sends it. Resolves once the app has accepted it. */
  async send(text) {
    const message = await this.get("textbox", "Message");
    await this.session.type(message, text);
    await this.click("button", "Send");
    await this.until("the message to be sent", async () =>
      (await this.conversation()).includes(text),
    );
  }

  /** Sends and waits for the complete answer. Returns it as stored. */
  async ask(text) {
    await this.send(text);
    return this.answered();
  }

  /** Waits until the answer is complete. Returns the last message as stored. */
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

  /** Calls a host command directly, in order to inspect or prepare stored state. */
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

  /**
   * A chat as stored, by default the open one; undefined if there is none. Its messages have their
   * text and thinking beside the parts.
   */
  async openChat(id) {
    const { current, chats } = id === undefined ? await this.snapshot() : { current: id };
    const chat = current ?? chats[0]?.id;
    if (chat === undefined) return undefined;
    const view = await this.invoke("open_chat", { id: chat });
    const joined = (parts, kind) =>
      parts.map((part) => (part.kind === kind ? part.text : "")).join("");
    const messages = view.messages.map((message) => ({
      ...message,
      text: joined(message.parts, "text"),
      thinking: joined(message.parts, "thinking"),
    }));
    return { ...view, messages };
  }

  /** Changes stored settings and reloads the page. */
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

  /** Makes the model's answers deterministic. */
  exact(change = {}) {
    return this.settings({
      thinking: false,
      guideAnswers: false,
      ...change,
      samplingChanges: { temperature: 0, repeatPenalty: 1 },
    });
  }

  /**
   * Requests an answer that continues until the context is full, in order to act meanwhile if the
   * app is {@link SLOW}: almost any token is as likely as the end.
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

  /** Process id of the app, a descendant of the driver. */
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

  /** Kills the app. Its data folder stays as it was at that moment. */
  crash() {
    process.kill(this.pid(), "SIGKILL");
    this.session.kill();
  }

  /** Closes the window as a user would, and waits until the app has exited. */
  async close() {
    const pid = this.pid();
    await this.session.send("DELETE", "/window");
    await until(10_000, "the app to end", () => !existsSync(`/proc/${pid}/exe`));
    this.session.kill();
  }

  /** Terminates the app as at the end of a session. The driver itself may kill it. */
  async end() {
    const pid = this.pid();
    process.kill(pid, "SIGTERM");
    await until(10_000, "the app to end", () => !existsSync(`/proc/${pid}/exe`));
    this.session.kill();
  }

  async picture(name) {
    mkdirSync(pictures, { recursive: true });
    // Under Xvfb, WebKit paints on request and returns the previous picture.
    await this.session.screenshot();
    await this.session.runAsync(`await new Promise((painted) => setTimeout(painted, 500))`);
    writeFileSync(join(pictures, `${name}.png`), await this.session.screenshot());
  }
}

/**
 * Content of a file, or an empty text if it does not exist, for example after a process has exited.
 */
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
