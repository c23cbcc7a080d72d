// npm run build: builds the packages for this system. Arguments are passed to `tauri bundle`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageConfig } from "./linux-packages.mjs";
import { fail, must, packageCommand } from "./programs.mjs";
import { root } from "./root.mjs";
import {
  builtApp,
  builtCompanions,
  packedBeside,
  targetFolder,
  tellOfFirstBuild,
} from "./rust.mjs";
import { prepareBuild } from "./setup.mjs";

const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
prepareBuild();
const app = builtApp("release");
tellOfFirstBuild(app);
const tauri = (...args) => must(...packageCommand("@tauri-apps/cli/tauri.js", ...args));
tauri("build", "--no-bundle");
const release = join(targetFolder(), "release");
const companions = builtCompanions("release");
for (const companion of companions) if (!existsSync(companion)) fail(`${companion} was not built`);
const folder = join(release, "package");
const packed = companions.map((companion) => packedBeside(companion, folder));
const config = { bundle: { externalBin: packed } };
if (process.platform === "linux")
  Object.assign(
    config.bundle,
    (await packageConfig([app, ...companions], folder, homepage)).bundle,
  );
tauri("bundle", "--config", JSON.stringify(config), ...process.argv.slice(2));
console.log(`packages: ${join(release, "bundle")}`);
