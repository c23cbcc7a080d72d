// Pictures of the states of the window, light and dark, for visual review.
//
//     npm run screens                  all of them, under tests/out/screens
//     npm run screens -- order bin     some of them
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { screens } from "./states.js";
import { Stand, shot } from "./window.js";

const tests = join(dirname(fileURLToPath(import.meta.url)), "..");

async function takeAll(names, folder) {
  mkdirSync(folder, { recursive: true });
  const take = async (name, colorScheme) => {
    const picture = await shot(stand, name, { ...screens[name], colorScheme });
    writeFileSync(join(folder, `${name}-${colorScheme}.png`), picture);
  };
  for (const name of names)
    await Promise.all(["light", "dark"].map((scheme) => take(name, scheme)));
}

const chosen = process.argv.slice(2);
const stand = await Stand.open();
try {
  await takeAll(chosen.length > 0 ? chosen : Object.keys(screens), join(tests, "out", "screens"));
} finally {
  await stand.close();
}
