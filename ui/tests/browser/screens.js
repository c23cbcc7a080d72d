// Pictures of the states of the window, in light and in dark. Look at them.
//
//     npm run screens                  all of them, under tests/out/screens
//     npm run screens -- order bin     some of them
//     npm run screens -- --for-users   those of ../screenshots/README.md
import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { screens } from "./states.js";
import { Stand } from "./window.js";

const tests = join(dirname(fileURLToPath(import.meta.url)), "..");

/** The pictures for users: the state that each shows. Each is there in light, in dark, and in a window of 420 pixels. */
const forUsers = {
  order: "order",
  selection: "order-selected",
  folders: "order-folder",
  bin: "bin",
  temporary: "temporary",
  palette: "palette-search",
  find: "find",
  slash: "slash",
  regenerate: "regenerate-menu",
  "answer-now": "answer-now",
  context: "context",
  "context-full": "context-left-out",
  summary: "summary-chat",
  preset: "preset",
  presets: "presets",
  export: "export-chat",
  data: "settings-data",
  settings: "settings",
  "settings-search": "settings-search",
  privacy: "settings-privacy",
};

async function take(file, name, colorScheme, size = {}) {
  const { act, ...view } = { ...screens[name], ...size };
  const page = await stand.page({ ...view, colorScheme });
  await act?.(page);
  await page.waitForTimeout(350);
  await page.screenshot({ path: file });
  if (page.faults.length > 0) throw new Error(`${name}: ${page.faults.join("\n")}`);
  await page.context().close();
}

async function takeAll(names, folder) {
  mkdirSync(folder, { recursive: true });
  const file = (name, scheme) => join(folder, `${name}-${scheme}.png`);
  for (const name of names)
    await Promise.all(["light", "dark"].map((scheme) => take(file(name, scheme), name, scheme)));
}

async function takeForUsers(folder) {
  const file = (name) => join(folder, `${name}.png`);
  for (const [name, state] of Object.entries(forUsers))
    await Promise.all([
      take(file(name), state, "light"),
      take(file(`${name}-dark`), state, "dark"),
      take(file(`${name}-small`), state, "light", { width: 420, height: 720 }),
    ]);
}

const chosen = process.argv.slice(2);
const stand = await Stand.open();
try {
  if (chosen.includes("--for-users")) await takeForUsers(join(tests, "..", "screenshots"));
  else
    await takeAll(chosen.length > 0 ? chosen : Object.keys(screens), join(tests, "out", "screens"));
} finally {
  await stand.close();
}
