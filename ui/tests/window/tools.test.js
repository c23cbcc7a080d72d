import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, dataFolder, hooks, root } from "./app.js";
import { Display } from "./driver.js";

// The tiny model has random weights: it calls what it may call, with arguments that the schema allows.
const env = { GOLDCREST_REQUIRE_CALLS: "1" };

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Opens the app with these tools on, of which an answer can call one. */
async function withTools(t, tools) {
  const app = await App.open(t, display, { env });
  await choose(app, tools);
  return app;
}

/** Turns tools on, with a sampling that does not repeat itself. */
const choose = (app, tools) =>
  app.settings({
    tools,
    toolRounds: 1,
    thinking: false,
    maxTokens: 400,
    samplingChanges: { temperature: 2, topP: 1, topK: 0, minP: 0, repeatPenalty: 1, seed: 3 },
  });

const last = async (app) => (await app.openChat()).messages.at(-1);
const kinds = (message) => message.parts.map((part) => part.kind);

test("a question, a call, consent, its result and an answer", hooks, async (t) => {
  const app = await withTools(t, ["search_chats"]);
  await app.send("Where do goldcrests nest?");
  const card = await app.get("group", /Search in chats asks to run/);
  await app.picture("tool-asks");
  assert.match(await app.text(card), /[Rr]eads your chats/);
  // Enter sends nothing and allows nothing.
  assert.deepEqual(kinds(await last(app)).slice(-1), ["tool-call"]);
  await app.click("button", /^Allow once/, card);
  await app.until("the answer", async () => (await last(app)).state !== "writing", 60_000);
  const answer = await last(app);
  const result = answer.parts.find((part) => part.kind === "tool-result");
  assert.match(result.text, /No chat has all of these words/);
  assert.ok(kinds(answer).indexOf("tool-result") < kinds(answer).length - 1, "it goes on");
  await app.picture("tool-done");
});

test("a denied call is not run, and a stopped one neither", hooks, async (t) => {
  const app = await withTools(t, ["search_chats"]);
  await app.send("Where do goldcrests nest?");
  await app.click("button", /^Deny/, await app.get("group", /asks to run/));
  const word = await app.get("textbox", /word|why|tell/i);
  await app.session.type(word, "Not now.");
  await app.click("button", /^Deny/, await app.get("group", /asks to run/));
  await app.until("the answer", async () => (await last(app)).state !== "writing", 60_000);
  const denied = (await last(app)).parts.find((part) => part.kind === "tool-result");
  assert.equal(denied.outcome, "denied");
  assert.match(denied.text, /Not now\./);
  await app.send("And when?");
  await app.get("group", /asks to run/);
  await app.click("button", "Stop");
  await app.until("the end", async () => (await last(app)).state === "stopped");
  await app.until("the card", async () => /[Nn]ot run/.test(await app.conversation()));
});

/** Saves a server, as pasted from another app, and waits until it is ready. */
async function started(app, name, command, args) {
  const text = JSON.stringify({ mcpServers: { [name]: { command, args } } });
  const [pasted] = await app.invoke("parse_servers", { text });
  // Without a sandbox, since what may change nothing does not ask.
  const config = { ...pasted.config, enabled: true, sandboxed: false };
  await app.invoke("save_servers", { configs: [config] });
  const state = async () => (await app.invoke("list_servers")).states[0];
  await app.until(name, async () => (await state()).status.kind !== "starting", 60_000);
  const { status, tools } = await state();
  assert.equal(status.kind, "ready", JSON.stringify(status));
  return { tools, state };
}

/** Has the model call a tool of a server, and allows it. Returns the result. */
async function called(app, tools, ownName) {
  await choose(app, [tools.find((tool) => tool.ownName === ownName).name]);
  await app.send("Go ahead.");
  const card = await app.get("group", /asks to run/);
  await app.click("button", /^Allow once/, card);
  await app.until("the answer", async () => (await last(app)).state !== "writing", 60_000);
  return (await last(app)).parts.find((part) => part.kind === "tool-result");
}

const packaged = (name) => join(root, "node_modules/@modelcontextprotocol", name, "dist/index.js");

test("server-everything is pasted, started, called and stopped", hooks, async (t) => {
  const app = await withTools(t, []);
  const { tools, state } = await started(app, "everything", process.execPath, [
    packaged("server-everything"),
  ]);
  const result = await called(app, tools, "get-sum");
  assert.equal(result.server, "everything");
  assert.match(result.text, /^The sum of /);
  await app.invoke("stop_server", { name: "everything" });
  await app.until("its end", async () => (await state()).status.kind === "stopped");
});

test("server-filesystem names the folder that it was given", hooks, async (t) => {
  const app = await withTools(t, []);
  const folder = dataFolder(t);
  const { tools } = await started(app, "files", process.execPath, [
    packaged("server-filesystem"),
    folder,
  ]);
  const result = await called(app, tools, "list_allowed_directories");
  assert.ok(result.text.includes(folder), result.text);
});

const python = join(root, "src-tauri/target/tmp/python/bin/python");
const withPython = hooks.skip
  ? hooks
  : { skip: !existsSync(python) && "npm test has installed no packages of Python" };
test("a server over the Python SDK is called", withPython, async (t) => {
  const app = await withTools(t, []);
  const script = join(dataFolder(t), "server.py");
  writeFileSync(
    script,
    `from mcp.server.mcpserver import MCPServer
server = MCPServer("sums")
@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b
server.run()
`,
  );
  const { tools } = await started(app, "sums", python, [script]);
  assert.match((await called(app, tools, "add")).text, /^-?\d+$/);
});
