// A model file whose chat template Goldcrest does not know: the built-in protocol is used, and the file's own, where it
// is wished, can do no harm.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder, root, demoFile } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** The demo model with another chat template. */
function withTemplate(source) {
  const image = readFileSync(demoFile);
  const usual = readFileSync(join(root, "models", "demo", "template.jinja"));
  const at = image.indexOf(usual.subarray(0, 200));
  assert(at > 0, "the template is in the file");
  const length = Number(image.readBigUInt64LE(at - 8));
  // The tensors are aligned, so that what comes after may only move by whole units.
  const around = Buffer.byteLength(`{##}${source}`);
  const filler = " ".repeat((((length - around) % 32) + 32) % 32);
  const text = Buffer.from(`{#${filler}#}${source}`);
  const stored = Buffer.alloc(8);
  stored.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([image.subarray(0, at - 8), stored, text, image.subarray(at + length)]);
}

/** Opens the app, and in it the demo model with this chat template. */
async function open(t, source) {
  const data = dataFolder(t);
  const file = join(data, "foreign.gguf");
  writeFileSync(file, withTemplate(source));
  const app = await App.open(t, display, { data, args: [file] });
  await template(app, "unknown");
  await app.exact();
  return app;
}

/** One of the chat templates that are made to do harm. */
function hostile(name) {
  const file = join(root, "src-tauri", "tests", "hostile", `${name}.jinja`);
  return readFileSync(file, "utf8");
}

/** Waits until this template is used. */
function template(app, used) {
  return app.until(`the template to be ${used}`, async () => {
    const { status } = (await app.snapshot()).model;
    return status.state === "ready" && status.model.template.used === used && status.model;
  });
}

const ownTemplate = "Use the file's own template";

async function card(app) {
  if (!(await app.isThere("switch", ownTemplate))) await app.click("button", /^Model:/);
  const note = await app.get("group", "Chat template");
  return app.text(note);
}

/** Asks with the card closed, which lies over the composer. */
async function ask(app, text) {
  if (await app.isThere("switch", ownTemplate)) await app.click("button", /^Model:/);
  await app.until("the card to close", async () => !(await app.isThere("switch", ownTemplate)));
  return app.ask(text);
}

test("an unknown chat template is not used, a hostile one fails in time with the reason, and the chat goes on", async (t) => {
  const app = await open(t, hostile("slow_eq"));
  assert.match(await card(app), /built-in SmolLM3 protocol/);
  assert.equal((await ask(app, "What is Goldcrest?")).state, "done");

  await card(app);
  await app.click("switch", ownTemplate);
  await template(app, "own");
  const failed = await ask(app, "Who are you?");
  assert.equal(failed.state, "failed");
  assert.match(failed.error.message, /took longer than 2 s.*built-in protocol/);
  const words = await app.until("the reason on the card", async () => {
    const words = await card(app);
    return /took longer than 2 s/.test(words) && words;
  });
  assert.match(words, /Switch it off/);
  await app.picture("refused-template");

  await app.click("switch", ownTemplate);
  await template(app, "unknown");
  const answer = await ask(app, "Who made you?");
  assert.equal(answer.state, "done");
  assert.equal(answer.error, null);
  await app.close();
});

test("a template that would end the app does not, and the choice for its file is kept", async (t) => {
  const app = await open(t, hostile("nested_drop"));
  await card(app);
  await app.click("switch", ownTemplate);
  await template(app, "own");
  const failed = await ask(app, "Hello");
  assert.equal(failed.state, "failed");
  assert.match(failed.error.message, /crashed, or took too much memory|took longer than 2 s/);
  const { data } = app;
  await app.close();

  const again = await App.open(t, display, { data });
  await template(again, "own");
  await again.close();
});

test("a file's own template that is well-behaved answers", async (t) => {
  const usual = readFileSync(join(root, "models", "demo", "template.jinja"), "utf8");
  const app = await open(t, `${usual}{# of unknown text #}`);
  await card(app);
  await app.click("switch", ownTemplate);
  const model = await template(app, "own");
  assert.equal(model.canThink, true);
  assert.match((await ask(app, "What is Goldcrest?")).text, /computer/);
  await app.close();
});
