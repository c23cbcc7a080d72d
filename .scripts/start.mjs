// npm start: sets the machine up, builds the app as it ships, and opens it.  Arguments go on to the app.
import { spawn } from "node:child_process";
import { fail } from "./programs.mjs";
import { buildRelease } from "./rust.mjs";
import { prepareBuild } from "./setup.mjs";
import { buildUi } from "./ui.mjs";

prepareBuild();
buildUi();

const app = spawn(buildRelease(), process.argv.slice(2), { stdio: "inherit" });
app.on("error", (error) => fail(`the app did not start: ${error.message}`));
app.on("exit", (status, signal) => process.exit(signal ? 1 : status));
// Ctrl+C reaches the app too, which ends in its own way; wait for that.
process.on("SIGINT", () => {});
