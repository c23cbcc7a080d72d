// Fails if the compiler or clippy warns of anything in the workspace. Cargo repeats the warnings of
// what it has compiled, so this compiles nothing after a build.
import { spawnSync } from "node:child_process";
import { manifest } from "./root.mjs";

const build = ["build", "--workspace", "--all-targets", "--message-format=json"];
const { status, stdout } = spawnSync("cargo", [...build, "--manifest-path", manifest], {
  encoding: "utf8",
  maxBuffer: 1 << 28,
  stdio: ["ignore", "pipe", "inherit"],
});
const messages = stdout
  .split("\n")
  .filter(Boolean)
  .map((line) => JSON.parse(line))
  .filter(({ reason }) => reason === "compiler-message");
const warnings = new Set(messages.map(({ message }) => message.rendered));
for (const warning of warnings) console.log(warning);
process.exitCode = status === 0 && warnings.size === 0 ? 0 : 1;
