// npm run bench:start -- 5000: time until the window shows its chats after a start, and its memory,
// without chats and with this number of chats of 20 messages. Release build; medians of five
// alternating starts.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Display, Session, until } from "./driver.js";
import { descendants, link } from "./processes.js";

const STARTS = 5;
const count = Number(process.argv[2] ?? 5000);
const binary =
  process.env.GOLDCREST_BINARY ??
  join(import.meta.dirname, "..", "..", "..", "src-tauri", "target", "release", "goldcrest");

/** A sentence whose words depend on the seed. */
function words(length, seed) {
  const all =
    "compound interest bird river function value table memory question invoice dough winter slow north".split(
      " ",
    );
  return Array.from({ length }, (_, at) => all[(seed * 31 + at * at * 7 + at) % all.length]).join(
    " ",
  );
}

/** An export in Claude's format. */
function exported() {
  const chats = Array.from({ length: count }, (_, chat) => {
    const at = (message) => new Date(1.7e12 + chat * 3_600_000 + message * 30_000).toISOString();
    return {
      uuid: `chat-${chat}`,
      name: words(5, chat),
      created_at: at(0),
      updated_at: at(19),
      chat_messages: Array.from({ length: 20 }, (_, message) => ({
        uuid: `${chat}-${message}`,
        sender: message % 2 ? "assistant" : "human",
        text: words(message % 2 ? 90 : 15, chat * 20 + message),
        created_at: at(message),
      })),
    };
  });
  return JSON.stringify(chats);
}

function environment(folder) {
  return {
    GOLDCREST_DATA_DIR: folder,
    XDG_DATA_HOME: join(folder, "xdg-data"),
    XDG_CONFIG_HOME: join(folder, "xdg-config"),
    XDG_CACHE_HOME: join(folder, "xdg-cache"),
  };
}

/** Start time of a process, in milliseconds since the epoch. */
function begun(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  return Date.now() - (uptime - Number(fields[19]) / 100) * 1000;
}

/** Proportional set size in MB. */
function memory(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+)/m.exec(text)[1]) / 1000;
}

async function started(display, folder, chats) {
  const session = await Session.open(display, binary, [], environment(folder));
  try {
    const ready = chats
      ? "return document.querySelectorAll('nav li button, aside li button').length > 5 && Date.now()"
      : "return document.querySelector('textarea') !== null && Date.now()";
    const shown = await until(60_000, "the first screen", () => session.run(ready));
    const all = descendants(session.driver.pid);
    const app = all.find((pid) => link(`/proc/${pid}/exe`) === binary);
    const seconds = (shown - begun(app)) / 1000;
    await sleep(3000);
    const pids = [app, ...descendants(app)];
    return { seconds, app: memory(app), all: pids.map(memory).reduce((sum, one) => sum + one) };
  } finally {
    session.kill();
  }
}

const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];

const folder = mkdtempSync(join(tmpdir(), "goldcrest-start-"));
const display = await Display.open();
try {
  const file = join(folder, "conversations.json");
  writeFileSync(file, exported());
  const folders = { 0: join(folder, "none"), [count]: join(folder, "many") };
  execFileSync(binary, ["import", file], {
    stdio: "ignore",
    env: { ...process.env, ...environment(folders[count]) },
  });
  const runs = { 0: [], [count]: [] };
  for (let start = 0; start < STARTS; start++)
    for (const [chats, data] of Object.entries(folders))
      runs[chats].push(await started(display, data, Number(chats)));
  for (const [chats, all] of Object.entries(runs)) {
    const of = (what) => median(all.map((run) => run[what]));
    console.log(
      `${chats} chats: first screen after ${of("seconds").toFixed(2)} s, ` +
        `memory ${of("app").toFixed(0)} MB, with the window's processes ${of("all").toFixed(0)} MB`,
    );
  }
} finally {
  display.close();
  rmSync(folder, { recursive: true, force: true });
}
