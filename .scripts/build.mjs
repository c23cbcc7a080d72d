// npm run build: the packages that are shipped for this system.  Arguments go on to `tauri bundle`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packageConfig } from "./linux-packages.mjs";
import { must, packageCommand } from "./programs.mjs";
import { root } from "./root.mjs";
import { builtApp, targetFolder, tellOfFirstBuild } from "./rust.mjs";
import { prepareBuild } from "./setup.mjs";

const { homepage } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
prepareBuild();
const app = builtApp("release");
tellOfFirstBuild(app);
const tauri = (...args) => must(...packageCommand("@tauri-apps/cli/tauri.js", ...args));
tauri("build", "--no-bundle");
const release = join(targetFolder(), "release");
const own =
  process.platform === "linux"
    ? ["--config", JSON.stringify(await packageConfig(app, join(release, "package"), homepage))]
    : [];
tauri("bundle", ...own, ...process.argv.slice(2));
console.log(`packages: ${join(release, "bundle")}`);
