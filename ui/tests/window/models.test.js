import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder, starterFile } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Opens the app with a picker that will give `picked`. */
async function withPicker(t, fill) {
  const data = dataFolder(t);
  const picked = join(data, "picked.gguf");
  fill(picked);
  const app = await App.open(t, display, { data, env: { GOLDCREST_PICK_FILE: picked } });
  return { app, data, picked };
}

const model = async (app) => (await app.snapshot()).model;

test("a file of one's own is opened, and opened again at the next start", async (t) => {
  const { app, data, picked } = await withPicker(t, (path) => copyFileSync(starterFile, path));
  assert.equal(await app.invoke("pick_model"), true);
  const opened = await app.until("the file to be opened", async () => {
    const now = await model(app);
    return now.state === "ready" && !now.starter && now;
  });
  assert.match(opened.file, /picked\.gguf$/);
  await app.exact();
  assert.match((await app.ask("What is Goldcrest?")).text, /computer/);
  await app.close();

  const again = await App.open(t, display, { data });
  assert.match((await model(again)).file, /picked\.gguf$/);
  await again.close();
  assert.equal(
    readFileSync(picked).length,
    readFileSync(starterFile).length,
    "the file is as it was",
  );
});

for (const [what, bytes, says] of [
  [
    "truncated",
    () => readFileSync(starterFile).subarray(0, 3_000_000),
    /short|truncat|incomplete|end|beyond/i,
  ],
  ["foreign", () => Buffer.from("%PDF-1.7 this is no model"), /GGUF/],
]) {
  test(`a ${what} file is refused with the reason, and the starter goes on`, async (t) => {
    const { app } = await withPicker(t, (path) => writeFileSync(path, bytes()));
    await app.invoke("pick_model").catch(() => {});
    const error = await app.until("the reason on the screen", async () => {
      const text = await app.text();
      return says.test(text) && /picked\.gguf|file/i.test(text) && text;
    });
    assert.doesNotMatch(error, /panicked|unwrap|undefined/);
    await app.picture(`refused-${what}`);
    const now = await model(app);
    assert.equal(now.starter, true);
    assert.equal(now.state, "ready");
    await app.exact();
    assert.match((await app.ask("What is Goldcrest?")).text, /computer/);
  });
}
