// npm run build: the packages that are shipped for this system.  Arguments go on to `tauri build`.
import { join } from "node:path";
import { must, packageCommand } from "./programs.mjs";
import { builtApp, targetFolder, tellOfFirstBuild } from "./rust.mjs";
import { prepareBuild } from "./setup.mjs";

prepareBuild();
tellOfFirstBuild(builtApp("release"));
must(...packageCommand("@tauri-apps/cli/tauri.js", "build", ...process.argv.slice(2)));
console.log(`packages: ${join(targetFolder(), "release", "bundle")}`);
