// npm run build: the packages that are shipped, a .deb and an .rpm.  Arguments go on to `tauri build`.
import { join } from "node:path";
import { must, targetFolder } from "./root.mjs";
import { prepareBuild } from "./setup.mjs";

prepareBuild();
must("npx", ["tauri", "build", ...process.argv.slice(2)]);
console.log(`packages: ${join(targetFolder(), "release", "bundle")}`);
