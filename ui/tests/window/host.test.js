// Runs the shared host cases of src/host/suite.ts on the real host, in the real window.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build, runnerImport } from "vite";
import { App, ENDLESS, SLOW } from "./app.js";
import { Display } from "./driver.js";

const here = dirname(fileURLToPath(import.meta.url));
const quiet = { configFile: false, logLevel: "error", root: here };

const { module } = await runnerImport(join(here, "..", "..", "src", "host", "suite.ts"), quiet);

/** Bundles the cases and the window's host as one script. */
async function bundle() {
  const [{ output }] = await build({
    ...quiet,
    build: {
      write: false,
      minify: false,
      lib: { entry: join(here, "host-suite.ts"), formats: ["iife"], name: "hostSuite" },
    },
  });
  return `${output[0].code}\nwindow.hostSuite = hostSuite;`;
}

let display;
let script;
before(async () => {
  display = await Display.open();
  script = await bundle();
});
after(() => display.close());

const samplingChanges = { temperature: 0, topP: 1, topK: 0, minP: 0, repeatPenalty: 1, seed: null };
const questions = {
  short: {
    text: "What is Goldcrest?",
    settings: { threads: 1, guideAnswers: false, samplingChanges },
  },
  endless: { text: "Count from 1 to 500", settings: { threads: 1, samplingChanges: ENDLESS } },
};

test("the real host does what every host does", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await app.session.run(script);
  for (const { name } of module.hostCases)
    await t.test(name, async () => {
      await app.session.run(
        `window.outcome = undefined;
         window.hostSuite.run(arguments[0], arguments[1]).then((reason) => (window.outcome = [reason]))`,
        name,
        questions,
      );
      const [reason] = await app.until(
        "the case to end",
        () => app.session.run("return window.outcome ?? false"),
        120_000,
      );
      assert.equal(reason, null);
    });
});
