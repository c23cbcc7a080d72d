import assert from "node:assert/strict";
import { copyFileSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder, tinyFile, hooks } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Starts an app with a model file of the user. */
async function startedWith(t, bytes) {
  const data = dataFolder(t);
  const given = join(data, "given.gguf");
  writeFileSync(given, bytes);
  const app = await App.open(t, display, { data, args: [given] });
  return { app, data, given };
}

const model = async (app) => {
  const { status, error } = (await app.snapshot()).model;
  return { ...status.model, state: status.state, error };
};

test("a file of one's own is opened, and opened again at the next start", hooks, async (t) => {
  const data = dataFolder(t);
  const picked = join(data, "picked.gguf");
  copyFileSync(tinyFile, picked);
  const app = await App.open(t, display, { data, env: { GOLDCREST_PICK_FILE: picked } });
  assert.equal(await app.invoke("pick_model"), true);
  const opened = await app.until("the file to be opened", async () => {
    const now = await model(app);
    return now.state === "ready" && !now.bundledModel && now;
  });
  assert.match(opened.file, /picked\.gguf$/);
  await app.exact();
  assert.match((await app.ask("What is Goldcrest?")).text, /computer/);
  await app.close();

  const again = await App.open(t, display, { data });
  assert.match((await model(again)).file, /picked\.gguf$/);
  await again.close();
  assert.equal(readFileSync(picked).length, readFileSync(tinyFile).length, "the file is as it was");
});

test("a file that the app is started with is opened, and is the one from then on", async (t) => {
  const { app, data, given } = await startedWith(t, readFileSync(tinyFile));
  assert.equal((await model(app)).file, given);
  await app.close();
  const again = await App.open(t, display, { data });
  assert.equal((await model(again)).file, given);
  await again.close();

  // An error is shown in the window, and the last model stays open.
  const lost = await App.open(t, display, { data, args: [join(data, "lost.gguf")] });
  await lost.until("the reason on the screen", async () =>
    (await lost.text()).includes("lost.gguf"),
  );
  assert.equal((await model(lost)).file, given);
  await lost.picture("lost-file");
});

test("the environment goes before the settings, a flag before it, and the settings say so", async (t) => {
  const data = dataFolder(t);
  const given = join(data, "given.gguf");
  copyFileSync(tinyFile, given);
  const env = {
    GOLDCREST_MODEL: given,
    GOLDCREST_DEVICE: "cpu",
    GOLDCREST_THREADS: "1",
    GOLDCREST_CONTEXT: "1000",
  };
  const app = await App.open(t, display, { data, env, args: ["--context", "600"] });
  const now = await app.until("the file to be opened", async () => {
    const now = await model(app);
    return now.state === "ready" && now;
  });
  assert.equal(now.file, given);
  assert.equal(now.contextLength, 600);
  assert.match(now.device.name, /\b1 thread\b/);
  assert.deepEqual((await app.snapshot()).overrides, {
    device: { by: "GOLDCREST_DEVICE", value: "cpu" },
    threads: { by: "GOLDCREST_THREADS", value: "1" },
    context: { by: "--context", value: "600" },
  });
  await app.session.press("\uE009", ",");
  await app.click("tab", "Model");
  await app.until("the reason in the settings", async () =>
    (await app.text()).includes("GOLDCREST_THREADS sets this to 1."),
  );
  await app.picture("overridden");
  await app.close();

  const plain = await App.open(t, display, { data });
  assert.deepEqual((await plain.snapshot()).overrides, {
    device: null,
    threads: null,
    context: null,
  });
});

for (const [what, bytes, says] of [
  [
    "truncated",
    () => readFileSync(tinyFile).subarray(0, 3_000_000),
    /short|truncat|incomplete|end|beyond/i,
  ],
  ["foreign", () => Buffer.from("%PDF-1.7 this is no model"), /GGUF/],
]) {
  test(`a ${what} file is refused with the reason, and the bundled model goes on`, async (t) => {
    const { app } = await startedWith(t, bytes());
    const error = await app.until("the reason on the screen", async () => {
      const text = await app.text();
      return says.test(text) && /given\.gguf|file/i.test(text) && text;
    });
    assert.doesNotMatch(error, /panicked|unwrap|undefined/);
    await app.picture(`refused-${what}`);
    const now = await model(app);
    assert.equal(now.bundledModel, true);
    assert.equal(now.state, "ready");
    await app.exact();
    assert.match((await app.ask("What is Goldcrest?")).text, /computer/);
  });
}

const marks = (data) => readdirSync(data).filter((name) => /^(opening|gpu-in-use)-/.test(name));

/** Opens a file in one app, and starts another app that hangs while it opens the file again. */
async function loading(t) {
  const { app, data } = await startedWith(t, readFileSync(tinyFile));
  const opened = async (app) => {
    const now = await model(app);
    return now.state === "ready" && !now.bundledModel;
  };
  await app.until("the file to be opened", () => opened(app));
  assert.deepEqual(marks(data), []);
  await app.close();

  const hold = join(data, "hold");
  writeFileSync(hold, "");
  const env = { GOLDCREST_HOLD_OPENING: hold };
  const held = await App.open(t, display, { data, ready: false, env });
  await held.until("the mark of opening", () => marks(data).length === 1);
  return { held, data, hold, opened };
}

test("a file on which the app crashed is opened again only on request", hooks, async (t) => {
  const { held, data, hold, opened } = await loading(t);
  held.crash();
  rmSync(hold);

  // Skipped at the next start and at the one after it.
  for (const start of [1, 2]) {
    const app = await App.open(t, display, { data });
    assert.equal((await model(app)).bundledModel, true);
    const why = "given.gguf was not opened: the app ended the last time it was opened.";
    await app.until("the reason on the screen", async () => (await app.text()).includes(why));
    if (start === 1) {
      await app.picture("crashed-over-file");
      await app.exact();
      assert.match((await app.ask("What is Goldcrest?")).text, /computer/);
    } else {
      await app.click("button", "Try again");
      await app.until("the file to be opened", () => opened(app));
      await app.until("the reason to be gone", async () => !(await app.text()).includes(why));
    }
    await app.close();
  }
  const after = await App.open(t, display, { data });
  assert(await opened(after));
  assert.deepEqual(marks(data), []);
});

test("ending the app while a model loads is not taken for a crash", hooks, async (t) => {
  const { held, data, hold, opened } = await loading(t);
  await held.end();
  assert.deepEqual(marks(data), []);
  rmSync(hold);
  const after = await App.open(t, display, { data });
  assert(await opened(after));
});

test("the card checks the bundled model with an independent program", async (t) => {
  const app = await App.open(t, display);
  await app.click("button", /^Model:/);
  await app.click("button", "Check this model");
  await app.until(
    "the verdict",
    async () => /Checked: Goldcrest and candle agree/.test(await app.text()),
    60_000,
  );
  await app.picture("checked");
});
