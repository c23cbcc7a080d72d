// From the first screen to a downloaded model, with the real `goldcrest-fetch` and a local hub.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { App, binary, dataFolder, tinyFile, root } from "./app.js";
import { Display, until } from "./driver.js";
import { descendants, isDriverPort, link, sockets } from "./processes.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

const { models } = JSON.parse(readFileSync(join(root, "models", "manifest.json"), "utf8"));
const official = models.find(({ file }) => file === "SmolLM3-Q4_K_M.gguf");
const bundled = readFileSync(tinyFile);
const COMMIT = "0123456789abcdef0123456789abcdef01234567";

/**
 * A local hub. It serves the bundled model under another name, and for the official file zero bytes
 * at ten megabytes per second.
 */
async function hub(t) {
  const asked = [];
  const server = createServer((request, response) => {
    asked.push({ path: request.url, method: request.method, range: request.headers.range });
    const isOfficial = request.url.endsWith(`/resolve/${official.revision}/${official.file}`);
    const isOwn = request.url.endsWith("/own.gguf");
    if (!isOfficial && !isOwn) return response.writeHead(404).end();
    const size = isOfficial ? official.bytes : bundled.length;
    const hash = isOfficial ? official.sha256 : createHash("sha256").update(bundled).digest("hex");
    const from = Number(/^bytes=(\d+)-/.exec(request.headers.range ?? "")?.[1] ?? 0);
    response.writeHead(from > 0 ? 206 : 200, {
      "Content-Length": size - from,
      "Accept-Ranges": "bytes",
      ...(from > 0 && { "Content-Range": `bytes ${from}-${size - 1}/${size}` }),
      ETag: `"${hash}"`,
      "X-Linked-Etag": `"${hash}"`,
      "X-Linked-Size": size,
      "X-Repo-Commit": isOfficial ? official.revision : COMMIT,
    });
    if (request.method === "HEAD") return response.end();
    if (isOwn) return response.end(bundled.subarray(from));
    const megabyte = Buffer.alloc(1 << 20);
    const timer = setInterval(() => response.write(megabyte), 100);
    response.on("close", () => clearInterval(timer));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = `http://127.0.0.1:${server.address().port}`;
  return { address, asked };
}

/** Environment of an app with folders of its own and this hub. */
function folders(t, hub) {
  const data = dataFolder(t);
  return { data, env: { HOME: data, HF_HOME: join(data, "hf"), HF_ENDPOINT: hub.address } };
}

const cached = (data, repository, ...rest) =>
  join(data, "hf", "hub", `models--${repository.replace("/", "--")}`, ...rest);

test("the first screen leads to the model; its download is paused, and resumed at the next start", async (t) => {
  const server = await hub(t);
  const { data, env } = folders(t, server);
  const app = await App.open(t, display, { data, env });
  const offer = await app.get("region", "Get a model");
  await app.until("size and price", async () => (await app.text(offer)).includes("1.9 GB, free"));
  await app.picture("first-screen");
  await app.click("button", "Details");
  await app.until("the mirror", async () =>
    (await app.text(offer)).includes("Downloads once from 127.0.0.1"),
  );
  assert.deepEqual(server.asked, [], "nothing is asked before a click");

  await app.click("button", "Get SmolLM3-3B");
  await app.until("bytes on the screen", async () =>
    /([3-9]|\d\d) MB of 1\.9 GB · [\d.]+ MB\/s/.test(await app.text(offer)),
  );
  await app.picture("first-download");
  const pid = app.pid();
  const isDrivers = isDriverPort(pid);
  const open = sockets(pid).filter((socket) => !isDrivers(socket));
  const holders = new Set(open.map(({ process }) => link(`/proc/${process}/exe`)));
  assert.deepEqual([...holders], [join(dirname(binary), "goldcrest-fetch")]);
  const { processes } = await app.invoke("check_network");
  const downloads = processes.filter(({ role }) => role === "download");
  assert.deepEqual(
    downloads.map(({ name, network }) => [name, network.length > 0]),
    [["goldcrest-fetch", true]],
  );
  await app.get("button", "Downloading: network connections");
  await app.exact();
  assert.match(
    (await app.ask("What is Goldcrest?")).text,
    /computer/,
    "meanwhile the bundled model",
  );

  await app.session.press("\uE009", "\uE008", "m");
  await app.get("dialog", "Models");
  await app.picture("models-page");
  await app.click("button", "Pause: SmolLM3-3B, Q4_K_M");
  const paused = /Paused at ([\d.]+) MB of 1\.9 GB/;
  await app.until("the pause", async () => paused.test(await app.text()));
  const [, before] = paused.exec(await app.text());
  const blobs = cached(data, official.repository, "blobs");
  const [name, ...others] = readdirSync(blobs);
  assert.match(name, new RegExp(`^${official.sha256}`));
  assert.deepEqual(others, []);
  const bytes = statSync(join(blobs, name)).size;
  assert(bytes > 1 << 20);
  await app.close();

  const again = await App.open(t, display, { data, env });
  await again.click("button", /^Model:/);
  await again.until("the pause, with its bytes", async () =>
    (await again.text()).includes(`Paused at ${before} MB`),
  );
  const asked = server.asked.length;
  await again.click("button", "Resume: SmolLM3-3B, Q4_K_M");
  await again.until("a further request", () => server.asked.length > asked);
  const { range } = server.asked.at(-1);
  assert.match(range, /^bytes=\d+-$/);
  assert(Math.abs(Number(/\d+/.exec(range)[0]) - bytes) <= 1 << 20, `${range} after ${bytes}`);
  await again.until("more bytes on the disk", () => statSync(join(blobs, name)).size > bytes);
  await again.close();
  const size = () => statSync(join(blobs, name)).size;
  let last = -1;
  await until(5000, "the download to end with the app", async () => {
    const before = last;
    last = size();
    await sleep(500);
    return before === last;
  });
});

test("an app that is killed in the middle of a download resumes it at the next start", async (t) => {
  const server = await hub(t);
  const { data, env } = folders(t, server);
  const app = await App.open(t, display, { data, env });
  await app.click("button", "Get SmolLM3-3B");
  const blobs = cached(data, official.repository, "blobs");
  const part = () => join(blobs, readdirSync(blobs)[0]);
  await app.until("bytes on the disk", () => existsSync(blobs) && statSync(part()).size > 2 << 20);
  app.crash();
  let last = -1;
  const isStill = () => last === (last = statSync(part()).size);
  await until(10_000, "the download to end with the app", async () => {
    await sleep(500);
    return isStill();
  });

  const again = await App.open(t, display, { data, env });
  await again.click("button", /^Model:/);
  const shown = /Paused at [\d.]+ MB of 1\.9 GB/;
  await again.until("the pause", async () => shown.test(await again.text()));
  const asked = server.asked.length;
  await again.click("button", "Resume: SmolLM3-3B, Q4_K_M");
  await again.until("a further request", () => server.asked.length > asked);
  assert.equal(server.asked.at(-1).range, `bytes=${last}-`, "nothing is lost");
  await again.until("more bytes on the disk", () => statSync(part()).size > last);
  await again.close();
});

test(
  "during a download goldcrest-fetch alone opens network sockets",
  {
    skip: spawnSync("strace", ["--version"]).error ? "there is no strace" : false,
  },
  async (t) => {
    const server = await hub(t);
    const { data, env } = folders(t, server);
    const app = await App.open(t, display, { data, env });
    await app.get("region", "Get a model");
    // The processes of the app and of WebKit, and all that they start.
    const traced = [app.pid(), ...descendants(app.pid())].flatMap((pid) => ["-p", String(pid)]);
    const log = join(data, "sockets");
    const trace = ["-f", "-qq", "-Y", "-e", "trace=socket", "-o", log];
    const strace = spawn("strace", [...trace, ...traced], { stdio: ["ignore", "ignore", "pipe"] });
    t.after(() => strace.kill());
    await sleep(1000);
    if (strace.exitCode !== null) return t.skip("this user may not trace");
    await app.click("button", "Get SmolLM3-3B");
    await app.until("bytes on the screen", async () =>
      /([3-9]|\d\d) MB of 1\.9 GB/.test(await app.text()),
    );
    await app.exact();
    await app.ask("What is Goldcrest?");
    await app.session.press("\uE009", "\uE008", "m");
    await app.get("dialog", "Models");
    await app.click("button", "Pause: SmolLM3-3B, Q4_K_M");
    await app.until("the pause", async () => /Paused at/.test(await app.text()));
    strace.kill("SIGINT");
    await once(strace, "exit");
    const traces = readFileSync(log, "utf8").split("\n");
    const ofNetwork = traces.filter((line) => /socket\(AF_INET6?,/.test(line));
    const others = ofNetwork.filter((line) => !/^\d+<goldcrest-fetch>/.test(line));
    assert(ofNetwork.length > 0, "the download is traced");
    assert.deepEqual(others, []);
  },
);

test("a model of a typed address is downloaded, opened, and goes to the trash", async (t) => {
  const server = await hub(t);
  const { data, env } = folders(t, server);
  const app = await App.open(t, display, { data, env });
  await app.get("region", "Get a model");
  await app.session.press("\uE009", "\uE008", "m");
  await app.get("dialog", "Models");
  const field = await app.get("textbox", "Get from an address");

  await app.session.type(field, "http://192.0.2.1/own.gguf");
  await app.click("button", "Get from this address");
  await app.until("the reason", async () =>
    (await app.text()).includes("An address has to begin with https://"),
  );
  await app.session.send("POST", `/element/${Object.values(field)[0]}/clear`, {});
  await app.session.type(field, `${server.address}/someone/models/resolve/main/own.gguf`);
  await app.click("button", "Get from this address");
  const opened = await app.until("the model", async () => {
    const { status } = (await app.snapshot()).model;
    return status.state === "ready" && !status.model.bundledModel && status.model;
  });
  const link = cached(data, "someone/models", "snapshots", COMMIT, "own.gguf");
  assert(lstatSync(link).isSymbolicLink());
  assert.deepEqual(readFileSync(link), bundled);
  assert.equal(readFileSync(cached(data, "someone/models", "refs", "main"), "utf8").trim(), COMMIT);
  assert.equal(opened.file, link);
  // The page still shows the result.
  await app.until("the end of it on the page", async () =>
    (await app.text()).includes("You are now talking to"),
  );
  await app.picture("models-page-downloaded");

  const { entries } = await app.invoke("list_models");
  const entry = entries.find(({ file }) => file === link);
  assert.equal(entry.place, "hugging-face");
  const remove = async () => {
    await app.click("button", new RegExp(`^More for ${entry.name}`));
    await app.click("menuitem", "Move to the trash");
  };
  await remove();
  await app.until("the refusal", async () => (await app.text()).includes("This model is in use."));
  assert(existsSync(link));
  await app.click("button", /^Open Tiny model/);
  await app.until("the bundled model", async () => {
    const { status } = (await app.snapshot()).model;
    return status.state === "ready" && status.model.bundledModel;
  });
  await app.session.press("\uE009", "\uE008", "m");
  await remove();
  await app.until("its end", async () => (await app.text()).includes("is in the trash."));
  assert(!existsSync(link));
  assert.deepEqual(readdirSync(cached(data, "someone/models", "blobs")), []);
  const trash = join(data, "xdg-data", "Trash", "files");
  const sizes = readdirSync(trash).map((name) => lstatSync(join(trash, name)).size);
  assert(sizes.includes(bundled.length), `the file is in the trash: ${sizes}`);
  await app.picture("models-page-trash");
});
