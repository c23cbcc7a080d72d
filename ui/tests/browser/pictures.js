// Pictures in ../../screenshots, some of which are in the README and in software centres.
//
//     npm run pictures                updates all of them
//     npm run pictures -- order bin   updates some of them
//     npm run pictures -- --check     fails if one no longer matches the page
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { screens } from "./states.js";
import { Stand, shot } from "./window.js";

const tests = join(dirname(fileURLToPath(import.meta.url)), "..");
const folder = join(tests, "..", "screenshots");
const out = join(tests, "out", "pictures");

/** State of each picture, by file name. */
const pictures = {
  window: "window",
  "first-screen": "first-start",
  help: "help",
  "guide-answer": "guide-answer",
  "small-model": "small-model",
  repeated: "repeated",
  download: "download",
  models: "models-found",
  "context-menu": "menu-chat",
  "right-to-left": "right-to-left",
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
  order: "order",
  selection: "order-selected",
  folders: "order-folder",
  bin: "bin",
  temporary: "temporary",
  export: "export-chat",
  data: "settings-data",
  "damaged-database": "damaged-copies",
  settings: "settings",
  "settings-search": "settings-search",
  privacy: "settings-privacy",
  "local-api": "settings-api",
};

/**
 * Variants of each picture: light, dark, and a window of 420 pixels; of the first also at 200 %.
 */
const variants = [
  ["", { colorScheme: "light" }],
  ["-dark", { colorScheme: "dark" }],
  ["-small", { colorScheme: "light", width: 420, height: 720 }],
];
const zoomed = { colorScheme: "light", width: 550, height: 360, deviceScaleFactor: 2 };

/**
 * Fixed time, so that a picture is the same on each day, and no motion: a click on a control of a
 * dialog that is still opening may scroll its list.
 */
const view = {
  now: "2026-03-05T10:30:00",
  timezoneId: "Europe/Berlin",
  locale: "en-GB",
  reducedMotion: "reduce",
};

/** Pictures that need the list of chats, which is hidden in a small window. */
const LARGE_ONLY = ["context-menu"];

/** Files with the states and views of their pictures. */
const files = Object.entries(pictures).flatMap(([name, state]) =>
  variants
    .filter(([suffix]) => suffix !== "-small" || !LARGE_ONLY.includes(name))
    .map(([suffix, size]) => [`${name}${suffix}.png`, state, size]),
);
files.push(["zoom-200.png", "window", zoomed]);

async function take([file, state, size]) {
  return [file, await shot(stand, file, { ...screens[state], ...view, ...size })];
}

/**
 * Compares pictures by cells of 8 × 8 pixels, because fonts render slightly differently on each
 * machine.
 */
async function differs(page, before, after) {
  const urls = [before, after].map((png) => `data:image/png;base64,${png.toString("base64")}`);
  return page.evaluate(async (urls) => {
    const CELL = 8;
    const cells = async (url) => {
      const image = await createImageBitmap(await (await fetch(url)).blob());
      const width = Math.ceil(image.width / CELL);
      const height = Math.ceil(image.height / CELL);
      const canvas = new OffscreenCanvas(width, height).getContext("2d");
      canvas.imageSmoothingQuality = "high";
      canvas.drawImage(image, 0, 0, width, height);
      return { width, height, data: canvas.getImageData(0, 0, width, height).data };
    };
    const [before, after] = await Promise.all(urls.map(cells));
    if (before.width !== after.width || before.height !== after.height) return 1;
    let changed = 0;
    for (let at = 0; at < before.data.length; at += 4) {
      const far = [0, 1, 2].some((c) => Math.abs(before.data[at + c] - after.data[at + c]) > 40);
      changed += Number(far);
    }
    return changed / (before.data.length / 4);
  }, urls);
}

const MOST_CHANGED = 0.003;

/** Pictures with Arabic text, which each system renders in its own font: not compared. */
const SYSTEM_FONTS = ["right-to-left"];

async function check() {
  const page = await (await stand.browser.newContext()).newPage();
  const stale = [];
  const compare = async (wanted) => {
    const [file] = wanted;
    const path = join(folder, file);
    let [after, changed] = [null, 1];
    // On a busy machine the state may not have settled.
    for (let turn = 0; turn < 3 && changed > MOST_CHANGED; turn++) {
      [, after] = await take(wanted);
      const isOwn = SYSTEM_FONTS.some((name) => file.startsWith(name));
      if (!existsSync(path)) changed = 1;
      else changed = isOwn ? 0 : await differs(page, readFileSync(path), after);
    }
    if (changed <= MOST_CHANGED) return;
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, file), after);
    stale.push(`${file}: ${(100 * changed).toFixed(1)} % of it looks different`);
  };
  // Dark pictures show the states of the light ones.
  for (const wanted of files) if (!wanted[0].endsWith("-dark.png")) await compare(wanted);
  const known = new Set(files.map(([file]) => file));
  for (const file of readdirSync(folder))
    if (file.endsWith(".png") && !known.has(file)) stale.push(`${file}: no state makes it`);
  for (const [, file] of readFileSync(join(folder, "README.md"), "utf8").matchAll(/\]\((.+?)\)/g))
    if (!known.has(file)) stale.push(`README.md shows ${file}, which no state makes`);
  if (stale.length === 0) return;
  console.error([...stale, "Look at ui/tests/out/pictures, then: npm run pictures"].join("\n"));
  process.exitCode = 1;
}

async function make(names) {
  const isWanted = ([file]) => names.length === 0 || names.some((name) => file.startsWith(name));
  if (names.length === 0)
    for (const file of readdirSync(folder)) if (file.endsWith(".png")) rmSync(join(folder, file));
  for (const wanted of files.filter(isWanted)) {
    const [file, picture] = await take(wanted);
    writeFileSync(join(folder, file), picture);
  }
}

const stand = await Stand.open();
try {
  const names = process.argv.slice(2);
  await (names.includes("--check") ? check() : make(names));
} finally {
  await stand.close();
}
