// npm run build: builds the packages for this system. Arguments are passed to `tauri bundle`.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { packageConfig } from "./linux-packages.mjs";
import { fail, must, packageCommand } from "./programs.mjs";
import { root } from "./root.mjs";
import {
  builtApp,
  builtDownloader,
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
const downloader = builtDownloader("release");
if (!existsSync(downloader)) fail(`${downloader} was not built`);
const folder = join(release, "package");
const config = { bundle: { externalBin: [packedBeside(downloader, folder)] } };
if (process.platform === "linux")
  Object.assign(config.bundle, (await packageConfig([app, downloader], folder, homepage)).bundle);
tauri("bundle", "--config", JSON.stringify(config), ...process.argv.slice(2));
console.log(`packages: ${join(release, "bundle")}`);
