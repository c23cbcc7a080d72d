// Prohibited actions of the window: executing text as code, network access, sockets.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { App, binary, dataFolder, tinyFile, SLOW } from "./app.js";
import { Display, until } from "./driver.js";
import { descendants, isDriverPort, link, sockets } from "./processes.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

test("the page runs no text as code and loads nothing from elsewhere", async (t) => {
  const app = await App.open(t, display);
  const refusals = await app.session.runAsync(`
    const violated = [];
    document.addEventListener("securitypolicyviolation", (event) => violated.push(event.effectiveDirective));
    const attempts = {
      eval: async () => (0, eval)("1"),
      function: async () => new Function("return 1")(),
      html: async () => { document.createElement("div").innerHTML = "<b>x</b>"; },
      fetch: async () => { await fetch("http://127.0.0.1:9/x"); },
      image: () => new Promise((resolve, reject) => {
        const image = new Image();
        image.onload = resolve;
        image.onerror = () => reject(new Error("refused"));
        image.src = "http://127.0.0.1:9/x.png";
      }),
      command: async () => window.__TAURI_INTERNALS__.invoke("plugin:window|close", {}),
    };
    const results = {};
    for (const [name, attempt] of Object.entries(attempts))
      results[name] = await attempt().then(() => "went through", () => "refused");
    await new Promise((resolve) => setTimeout(resolve, 100));
    return { results, violated };`);
  for (const [name, result] of Object.entries(refusals.results))
    assert.equal(result, "refused", name);
  // Blocked by the policy, and not merely unanswered.
  for (const directive of ["connect-src", "img-src"])
    assert(refusals.violated.includes(directive), directive);
});

test("no hint in the page connects to a server or asks for its name", async (t) => {
  const app = await App.open(t, display);
  const pid = app.pid();
  const server = await listener(t, 0);
  // Unused address of the web view's proxy. If the port may be bound, shows how far the hints were
  // followed.
  const proxy = await listener(t, 9).catch(() => undefined);
  const name = "chat.leak.example";
  await app.session.run(
    `for (const [rel, href] of arguments[0]) document.head.append(Object.assign(document.createElement("link"), { rel, href }));`,
    [
      ["preconnect", `http://127.0.0.1:${server.port}`],
      ["dns-prefetch", `https://${name}`],
      ["preconnect", `https://${name}`],
    ],
  );
  const asked = [];
  const look = () => {
    // A lookup is a datagram, or a stream to port 53.
    for (const socket of sockets(pid))
      if (socket.protocol.startsWith("udp") || socket.remote === 53) asked.push(socket);
  };
  const followed = () => proxy.said().includes(name) && proxy.connections.length > 1;
  if (proxy)
    await app.until("the hints to be followed", () => {
      look();
      return followed();
    });
  else
    t.diagnostic(
      "nobody but root may listen on port 9: whether the hints are followed is not seen",
    );
  const end = Date.now() + 2_000;
  while (Date.now() < end) {
    look();
    await sleep(5);
  }
  assert.deepEqual(asked, []);
  assert.equal(server.connections.length, 0);
});

test("a link to elsewhere does not take the window along", async (t) => {
  const app = await App.open(t, display);
  const before = await app.session.run("return location.href");
  await app.session.run("location.href = 'http://127.0.0.1:9/x'").catch(() => {});
  await sleep(500);
  assert.equal(await app.session.run("return location.href"), before);
  assert.equal(await app.session.run("return String(window.open('http://127.0.0.1:9/x'))"), "null");
});

test("no process of the app has a socket on the network while it answers", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  const pid = app.pid();
  await app.sendEndless();
  await app.get("button", "Stop");
  const isDrivers = isDriverPort(pid);
  const found = sockets(pid);
  assert(found.some(isDrivers), "the driver's port is not found, so no other would be");
  assert.deepEqual(
    found.filter((socket) => !isDrivers(socket)),
    [],
  );
});

test("no process of the app has a socket on the network while it searches for models", async (t) => {
  const data = dataFolder(t);
  const downloads = join(data, "Downloads");
  mkdirSync(downloads);
  for (let file = 0; file < 5000; file++) writeFileSync(join(downloads, `${file}.txt`), "");
  copyFileSync(tinyFile, join(downloads, "SmolLM3-found.gguf"));
  const app = await App.open(t, display, { data, env: { HOME: data, XDG_CONFIG_HOME: data } });
  const pid = app.pid();
  const isDrivers = isDriverPort(pid);
  let searches = 0;
  await app.until("five searches, with the file", async () => {
    const list = await app.invoke("list_models");
    const found = list.entries.some(({ name, place }) => name && place === "downloads");
    if (list.scanning) searches += 1;
    assert.deepEqual(
      sockets(pid).filter((socket) => !isDrivers(socket)),
      [],
    );
    return searches >= 5 && found;
  });
});

test("the app's own count finds what /proc shows: the driver's sockets, and no other", async (t) => {
  const app = await App.open(t, display);
  const pid = app.pid();
  const isDrivers = isDriverPort(pid);
  const { processes } = await app.invoke("check_network");
  const names = processes.map(({ name }) => name);
  for (const name of ["goldcrest", "WebKitWebProcess", "WebKitNetworkProcess"])
    assert(names.includes(name), `${name} is not among ${names}`);
  assert(processes.every(({ readable, local }) => readable && local > 0));
  const counted = processes.flatMap(({ network }) => network);
  assert(counted.length > 0, "the driver's port is not found, so no other would be");
  const ofDriver = (words) =>
    [...words.matchAll(/:(\d+)\b/g)].some(([, port]) => isDrivers({ local: +port, remote: +port }));
  assert(counted.every(ofDriver), counted.join("\n"));
  await app.click("button", "Connected: network connections");
  await app.until("the count on the page", async () =>
    /Network connections: [1-9]\d*,\s+checked just now/.test(await app.text()),
  );
  await app.picture("privacy");
});

test("without a driver there is no socket at all", async (t) => {
  const child = spawn("dbus-run-session", ["--", binary], {
    env: {
      ...process.env,
      DISPLAY: display.name,
      WAYLAND_DISPLAY: "",
      GOLDCREST_DATA_DIR: dataFolder(t),
    },
    stdio: "ignore",
    detached: true,
  });
  t.after(() => process.kill(-child.pid, "SIGKILL"));
  const family = await until(20_000, "the web process", () => {
    const all = descendants(child.pid);
    return all.some((pid) => /WebKitWebProcess/.test(link(`/proc/${pid}/exe`))) && all;
  });
  await sleep(2_000);
  assert.deepEqual(family.flatMap(sockets), []);
});

/** Listens on a local port and records the connections. */
async function listener(t, port) {
  const connections = [];
  const server = createServer((socket) => {
    const heard = [];
    connections.push(heard);
    socket.on("data", (data) => heard.push(data.toString("latin1"))).on("error", () => {});
    t.after(() => socket.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { port: server.address().port, connections, said: () => connections.flat().join("") };
}
