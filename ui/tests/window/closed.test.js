// What the window must not do: run text as code, reach the network, open a socket.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { App, binary, dataFolder, read } from "./app.js";
import { Display, until } from "./driver.js";

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
  // Refused by the policy, and not merely because nobody answers there.
  for (const directive of ["connect-src", "img-src"])
    assert(refusals.violated.includes(directive), directive);
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
  const app = await App.open(t, display);
  const pid = app.pid();
  // WebKit's own door for the driver, there only because this test asked for it.
  const [, door] =
    /WEBKIT_INSPECTOR_SERVER=[\d.]+:(\d+)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8")) ?? [];
  await app.sendEndless();
  await app.get("button", "Stop");
  const isDoor = ({ local, remote }) => [local, remote].some((port) => port === Number(door));
  const found = sockets(pid);
  assert(found.some(isDoor), "the door is not seen, so nothing else would be");
  assert.deepEqual(
    found.filter((socket) => !isDoor(socket)),
    [],
  );
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

/** The network sockets that this process and those below it hold, with their ports. */
function sockets(pid) {
  const found = [];
  for (const process of [pid, ...descendants(pid)]) {
    const inodes = new Set(
      links(`/proc/${process}/fd`).map((link) => /^socket:\[(\d+)\]/.exec(link)?.[1]),
    );
    for (const protocol of ["tcp", "tcp6", "udp", "udp6"])
      for (const line of read(`/proc/${process}/net/${protocol}`).trim().split("\n").slice(1)) {
        const fields = line.trim().split(/\s+/);
        const port = (address) => Number.parseInt(address.split(":")[1], 16);
        if (inodes.has(fields[9]))
          found.push({ process, protocol, local: port(fields[1]), remote: port(fields[2]) });
      }
  }
  return found;
}

// A process may go while it is looked at: then it holds nothing.

function links(folder) {
  try {
    return readdirSync(folder).map((name) => link(`${folder}/${name}`));
  } catch {
    return [];
  }
}

function link(path) {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function descendants(pid) {
  const children = read(`/proc/${pid}/task/${pid}/children`).split(" ").filter(Boolean).map(Number);
  return children.flatMap((child) => [child, ...descendants(child)]);
}
