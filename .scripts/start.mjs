// npm start: prepares the machine, builds the release and opens it. Arguments are passed to the
// app.
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
// The app also receives Ctrl+C. Waits for it to exit in its own way.
process.on("SIGINT", () => {});
