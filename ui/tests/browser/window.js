// The built UI with the scripted host, in Chromium, under the content security policy of the app.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { preview } from "vite";
import { findBrowser } from "../../../.scripts/browser.mjs";

const ui = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const configuration = join(ui, "..", "src-tauri", "tauri.conf.json");

/** Timeout for an expected condition. A busy machine may stall for seconds. */
const TIMEOUT_MS = 20_000;

/** The app's content security policy, as an HTTP header. */
function policy() {
  const { csp } = JSON.parse(readFileSync(configuration, "utf8")).app.security;
  return Object.entries(csp)
    .map(([directive, sources]) => `${directive} ${[sources].flat().join(" ")}`)
    .join("; ");
}

/**
 * Holds transient elements until `pass`: notices (src/state/notices.svelte.ts), and the "copied"
 * label. On a busy machine they might disappear before a test sees them.
 */
function holdPassing() {
  const { setTimeout } = window;
  window.passing = [];
  window.setTimeout = (act, ms, ...given) =>
    [8000, 1600].includes(ms) ? window.passing.push(act) : setTimeout(act, ms, ...given);
}

/** Removes the transient elements on the page. */
export function pass(page) {
  return page.evaluate(() => window.passing.splice(0).forEach((act) => act()));
}

/** A browser and a server for the duration of a test file. */
export class Stand {
  /**
   * Idle pages for reuse, by the options of their contexts. The app loads four times as fast in
   * them.
   */
  #idle = new Map();

  static async open() {
    const server = await preview({
      root: ui,
      logLevel: "error",
      build: { outDir: "dist-fake" },
      preview: { port: 0, host: "127.0.0.1", headers: { "Content-Security-Policy": policy() } },
    });
    const browser = await chromium.launch({
      // Playwright's own if the system has none.
      executablePath: findBrowser(),
      args: ["--no-sandbox", "--force-color-profile=srgb"],
    });
    return new Stand(server, browser);
  }

  constructor(server, browser) {
    this.server = server;
    this.browser = browser;
  }

  /** Opens the window on a scene of the scripted host. `faults` collects the errors of the page. */
  async page({
    scene = "usual",
    rate = 400,
    reading = 60,
    pause = 0,
    /** Messages of the newest chat; 0: as in the scene. */
    messages = 0,
    /** Chats besides those of the scene. */
    more = 0,
    /** Context length in tokens; 0: as in the scene. */
    context: contextLength = 0,
    /** Element that appears once the page is ready. */
    first = ["textbox", { name: "Message" }],
    width = 1100,
    height = 720,
    /** Simulated time at which the page opens; by default, the real time. */
    now,
    ...rest
  } = {}) {
    const options = JSON.stringify({ now, ...rest });
    const page = this.#idle.get(options)?.pop() ?? (await this.#newPage(options));
    page.faults = [];
    await page.setViewportSize({ width, height });
    const { port } = this.server.httpServer.address();
    const query = new URLSearchParams({
      ...{ scene, rate, reading, pause, messages, more },
      context: contextLength,
    });
    await page.goto(`http://127.0.0.1:${port}/?${query}`);
    await page.getByRole(...first).waitFor();
    await page.evaluate(() => document.fonts.ready);
    return page;
  }

  async #newPage(options) {
    const { now, ...rest } = JSON.parse(options);
    const context = await this.browser.newContext(rest);
    const page = await context.newPage();
    page.options = options;
    if (now) await page.clock.install({ time: now });
    await page.addInitScript(holdPassing);
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("pageerror", (error) => page.faults.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error") page.faults.push(message.text());
    });
    return page;
  }

  /** Returns a page for the next scene, without the app, permissions or a pointer over it. */
  async release(page) {
    await page.goto("about:blank");
    await page.context().clearPermissions();
    await page.mouse.move(-1, -1);
    const idle = this.#idle.get(page.options) ?? [];
    this.#idle.set(page.options, [...idle, page]);
  }

  async close() {
    await this.browser.close();
    await this.server.close();
  }
}

/** Takes a picture of a page after `act`. */
export async function shot(stand, name, { act, ...view }) {
  const page = await stand.page(view);
  await act?.(page);
  await page.waitForTimeout(350);
  // Transitions are ended: on a busy machine they last longer than the wait.
  const picture = await page.screenshot({ caret: "hide", animations: "disabled" });
  if (page.faults.length > 0) throw new Error(`${name}: ${page.faults.join("\n")}`);
  await page.context().close();
  return picture;
}

/**
 * Shares one browser in a test file. Each test loads the app in a page, which must log no error. A
 * test that fails runs once more, since a busy machine can break its timing. `npm test` lists the
 * tests that passed only then.
 */
export function scenes() {
  let stand;
  before(async () => (stand = await Stand.open()));
  after(() => stand.close());
  const play = async (view, run) => {
    const page = await stand.page(view);
    try {
      await run(page);
      assert.deepEqual(page.faults, []);
    } catch (error) {
      await page.context().close();
      throw error;
    }
    await stand.release(page);
  };
  return (name, view, run) =>
    test(name, async () => {
      try {
        await play(view, run);
      } catch (error) {
        await play(view, run);
        console.log(`flaky: ${name}: ${error.stack}`);
      }
    });
}

export const button = (page, name) => page.getByRole("button", { name, exact: true });
export const message = (page) => page.getByRole("textbox", { name: "Message", exact: true });
export const log = (page) => page.getByRole("log", { name: "Conversation" });
export const chats = (page) => page.getByRole("list", { name: "Chats", exact: true });

/** Requests of these names that the page has sent to the host. */
export function calls(page, ...names) {
  return page.evaluate(
    (names) => window.stage.calls.filter(([name]) => names.includes(name)),
    names,
  );
}

/** A question whose answer takes minutes, so that a test can act meanwhile. */
export const ENDLESS = "A long answer of 20000 tokens";

/** Resumes an answer that waits because of `pause`. */
export function resume(page) {
  return page.evaluate(() => window.stage.resume());
}

/** Retries `look` until its assertions hold. On a timeout, throws its last error. */
export async function soon(look) {
  const end = Date.now() + TIMEOUT_MS;
  for (;;) {
    try {
      return await look();
    } catch (error) {
      if (Date.now() > end) throw error;
    }
    await sleep(50);
  }
}

export async function ask(page, text) {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Regenerates the last answer. */
export async function regenerate(page, how = "Regenerate") {
  await button(page, "Regenerate").last().click();
  await page.getByRole("menuitem", { name: how, exact: true }).click();
}

/** Waits until no answer is being written. */
export async function answered(page) {
  await page.getByRole("button", { name: "Send" }).waitFor({ timeout: 30_000 });
}
