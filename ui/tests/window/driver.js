// A W3C WebDriver client for WebKitWebDriver, over fetch, without dependencies.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Started processes that are still running, so that an aborted test leaves none behind. */
const running = new Set();
process.on("exit", () => running.forEach(killGroup));
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

/**
 * Starts a program detached, so that it and its children form a process group that can be killed as
 * a whole.
 */
function start(program, args, options) {
  const child = spawn(program, args, { ...options, detached: true });
  running.add(child);
  return child;
}

/** An X display shared by the sessions of one test file. */
export class Display {
  static async open({ width = 1280, height = 860 } = {}) {
    // With -displayfd the server picks a free number and writes it to that descriptor.
    const server = start(
      "Xvfb",
      ["-displayfd", "3", "-screen", "0", `${width}x${height}x24`, "-nolisten", "tcp"],
      { stdio: ["ignore", "ignore", "ignore", "pipe"] },
    );
    const [number] = await within(10_000, "Xvfb to start", once(server.stdio[3], "data"));
    return new Display(server, `:${String(number).trim()}`);
  }

  constructor(server, name) {
    this.server = server;
    this.name = name;
  }

  close() {
    killGroup(this.server);
  }
}

/** A WebKitWebDriver with its own D-Bus, and the app that it started. */
export class Session {
  static async open(display, binary, args, env) {
    const port = await freePort();
    const driver = start(
      "dbus-run-session",
      ["--", "WebKitWebDriver", `--port=${port}`, "--host=127.0.0.1"],
      {
        env: {
          ...process.env,
          DISPLAY: display.name,
          WAYLAND_DISPLAY: "",
          TAURI_WEBVIEW_AUTOMATION: "true",
          // Without a GPU the app disables this renderer, and then a screenshot may never arrive.
          WEBKIT_DISABLE_DMABUF_RENDERER: "0",
          MESA_SHADER_CACHE_DISABLE: "true",
          ...env,
        },
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    const session = new Session(driver, `http://127.0.0.1:${port}`);
    driver.stderr.setEncoding("utf8").on("data", (text) => (session.said += text));
    try {
      await until(10_000, "WebKitWebDriver to answer", () =>
        session.#ask("GET", "/status").catch(() => false),
      );
      const options = { "webkitgtk:browserOptions": { binary, args } };
      const { sessionId } = await session.#ask(
        "POST",
        "/session",
        { capabilities: { alwaysMatch: options } },
        30_000,
      );
      session.path = `/session/${sessionId}`;
      await session.send("POST", "/timeouts", { script: 20_000, pageLoad: 20_000, implicit: 0 });
    } catch (error) {
      session.kill();
      throw new Error(`${error.message}\n${session.said}`, { cause: error });
    }
    return session;
  }

  constructor(driver, address) {
    this.driver = driver;
    this.address = address;
    /** Output of the driver and the app on stderr. */
    this.said = "";
  }

  /** Sends a command of this session. */
  send(method, path, body) {
    return this.#ask(method, this.path + path, body);
  }

  /** Runs a function body in the page. Its arguments may be elements. */
  run(body, ...args) {
    return this.send("POST", "/execute/sync", { script: body, args });
  }

  /** Runs a body that uses `await`. Its exceptions are thrown here. */
  async runAsync(body, ...args) {
    const script = `const done = arguments[arguments.length - 1];
      (async (...args) => { ${body} })(...[...arguments].slice(0, -1))
        .then((value) => done({ value }), (error) => done({ error: error?.message ?? JSON.stringify(error) }));`;
    const { value, error } = await this.send("POST", "/execute/async", { script, args });
    if (error !== undefined) throw new Error(error);
    return value;
  }

  /** Elements that match a CSS selector, optionally within another element. */
  async all(css, inside) {
    const path = inside ? `/element/${inside[ELEMENT]}/elements` : "/elements";
    return this.send("POST", path, { using: "css selector", value: css });
  }

  of(element, what) {
    return this.send("GET", `/element/${element[ELEMENT]}/${what}`);
  }

  click(element) {
    return this.send("POST", `/element/${element[ELEMENT]}/click`, {});
  }

  type(element, text) {
    return this.send("POST", `/element/${element[ELEMENT]}/value`, { text });
  }

  /** Presses keys together, e.g. ["\uE009", "k"] for Ctrl+K. */
  async press(...keys) {
    const down = keys.map((value) => ({ type: "keyDown", value }));
    const up = keys.toReversed().map((value) => ({ type: "keyUp", value }));
    await this.#keys([...down, ...up]);
  }

  /** Presses the keys of a text one after another. */
  async pressEach(text) {
    const actions = [...text].flatMap((value) => [
      { type: "keyDown", value },
      { type: "keyUp", value },
    ]);
    await this.#keys(actions);
  }

  async #keys(actions) {
    await this.send("POST", "/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
  }

  /** Screenshot of the window, as the bytes of a PNG. */
  async screenshot() {
    return Buffer.from(await this.send("GET", "/screenshot"), "base64");
  }

  kill() {
    killGroup(this.driver);
  }

  async #ask(method, path, body, limit = 30_000) {
    const response = await fetch(this.address + path, {
      method,
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(limit),
    });
    const { value } = await response.json();
    if (value?.error) throw new Error(`${method} ${path}: ${value.error}: ${value.message}`);
    return value ?? true;
  }
}

/** Polls `look` until it returns a truthy value, and returns that. */
export async function until(limit, what, look) {
  const end = Date.now() + limit;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited ${limit / 1000} s for ${what}`);
    await sleep(50);
  }
}

function within(limit, what, promise) {
  const late = sleep(limit, undefined, { ref: false }).then(() => {
    throw new Error(`waited ${limit / 1000} s for ${what}`);
  });
  return Promise.race([promise, late]);
}

function killGroup(child) {
  running.delete(child);
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {
    // It has already exited.
  }
}

/** Finds a free port. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
