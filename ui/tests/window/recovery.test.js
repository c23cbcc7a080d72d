import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

const setAside = (data) =>
  readdirSync(data).find((name) => /^goldcrest-set-aside-.*\.db$/.test(name));

/** Opens an app with a chat and a backup of it. */
async function withCopy(t, data) {
  const app = await App.open(t, display, { data });
  await app.exact();
  await app.ask("What is Goldcrest?");
  const copied = () =>
    existsSync(join(data, "copies")) &&
    readdirSync(join(data, "copies")).some((name) => name.endsWith(".db"));
  await app.until("the day's copy", copied, 60_000);
  return app;
}

/** Creates a data folder with a chat, whose app has exited. */
async function withChat(t) {
  const data = dataFolder(t);
  const app = await withCopy(t, data);
  await app.close();
  // The journal is not damaged with the file, and SQLite would recover from it.
  for (const suffix of ["-wal", "-shm"])
    rmSync(join(data, `goldcrest.db${suffix}`), { force: true });
  return data;
}

test("a window that opens before its chats has its size once they are there, and keeps it", async (t) => {
  const inner = (app) => app.session.run("return [innerWidth, innerHeight]");
  const isSmall = (app) => async () => (await inner(app)).join() === "640,520";
  const data = dataFolder(t);
  const first = await withCopy(t, data);
  await first.session.send("POST", "/window/rect", { width: 640, height: 520 });
  await first.until("the size", isSmall(first));
  await first.end();

  const database = join(data, "goldcrest.db");
  renameSync(database, join(data, "elsewhere.db"));
  const app = await App.open(t, display, { data, ready: false });
  await app.get("button", "Try again");
  assert.notEqual((await inner(app)).join(), "640,520");
  renameSync(join(data, "elsewhere.db"), database);
  await app.click("button", "Try again");
  await app.get("textbox", "Message");
  await app.until("the size", isSmall(app));
  await app.end();
  const last = await App.open(t, display, { data });
  await last.until("the size", isSmall(last));
  await last.end();
});

test("a damaged database: the app says so, and an empty one is begun without a restart", async (t) => {
  const data = await withChat(t);
  const database = join(data, "goldcrest.db");
  assert.equal(statSync(database).mode & 0o777, 0o600);
  assert.equal(statSync(data).mode & 0o777, 0o700);
  const damaged = Buffer.alloc(9000, 7);
  writeFileSync(database, damaged);

  const app = await App.open(t, display, { data, ready: false });
  await app.get("button", "Start with an empty one");
  assert.match(await app.text(), /The file with your chats is damaged/);
  assert.match(await app.text(), /goldcrest\.db is damaged/);
  assert.deepEqual(readFileSync(database), damaged, "nothing is changed before a choice");
  await app.picture("damaged");
  await app.click("button", "Start with an empty one");
  await app.get("textbox", "Message");
  assert.deepEqual(readFileSync(join(data, setAside(data))), damaged);
  assert.deepEqual((await app.snapshot()).chats, []);
  await app.until("the model to be ready", async () => {
    return (await app.snapshot()).model.status.state === "ready";
  });
  await app.exact();
  await app.ask("What is Goldcrest?");
});

test("a damaged database: a copy of it is restored without a restart", async (t) => {
  const data = await withChat(t);
  const database = join(data, "goldcrest.db");
  const length = 5000;
  writeFileSync(database, Buffer.alloc(length, 7));

  const app = await App.open(t, display, { data, ready: false });
  await app.click("button", /^Restore the backup of /);
  const list = await app.get("list", "Chats");
  await app.until("the chat in the list", async () =>
    (await app.text(list)).includes("What is Goldcrest?"),
  );
  assert.equal(statSync(join(data, setAside(data))).size, length);
  await app.close();
  assert(existsSync(database), "the window closes in order afterwards");
});

test("a folder in which nothing can be written is said, and the app goes on once it can", async (t) => {
  const home = dataFolder(t);
  const data = join(home, "data");
  writeFileSync(data, "a file in the folder's place");
  // The desktop's own folders are elsewhere.
  const names = ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"];
  const env = Object.fromEntries(names.map((name) => [name, join(home, name)]));
  const temporary = join(home, "tmp");
  mkdirSync(temporary);
  env.TMPDIR = temporary;
  const app = await App.open(t, display, { data, env, ready: false });
  await app.get("button", "Try again");
  assert.match(await app.text(), /Nothing can be written in the data folder/);
  const webViews = () =>
    readdirSync(temporary).filter((name) => name.startsWith("goldcrest-webview-"));
  assert.equal(webViews().length, 1, "the web view keeps its things elsewhere");
  assert.equal(statSync(join(temporary, webViews()[0])).mode & 0o777, 0o700);
  rmSync(data);
  await app.click("button", "Try again");
  await app.get("textbox", "Message");
  assert.equal((await app.snapshot()).firstStart, true);
  await app.end();
  assert.deepEqual(webViews(), [], "nothing of it stays");
});
