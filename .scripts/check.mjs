// npm run check: static checks. Every check runs, regardless of failures of earlier ones.
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { Parts, oneCount } from "./parts.mjs";
import { npmCommand, packageCommand, succeeds } from "./programs.mjs";
import { manifest } from "./root.mjs";
import { prepareBrowser, prepareBuild } from "./setup.mjs";
import { buildUi } from "./ui.mjs";

const INSTALL_DENY = ["cargo", ["install", "--debug", "--locked", "cargo-deny@0.20.2"]];
// npm test sets it in CI: then clippy has compiled the workspace, and the test of tidy has run.
const afterTests = process.env.RUSTC_WORKSPACE_WRAPPER === "clippy-driver";

const started = Date.now();
prepareBuild();
buildUi();

const cargo = (...args) => ["cargo", [args[0], "--manifest-path", manifest, ...args.slice(1)]];
const checks = {
  rustfmt: cargo("fmt", "--all", "--check"),
  clippy: afterTests
    ? [process.execPath, [".scripts/warnings.mjs"]]
    : cargo("clippy", "--workspace", "--all-targets", "--", "-D", "warnings"),
  ...(afterTests ? {} : { tidy: cargo("test", "--package", "tidy") }),
  "Prettier for .scripts": packageCommand(
    "prettier/bin/prettier.cjs",
    ...["--config", "ui/prettier.config.js", "--check", ".scripts"],
  ),
  "Svelte, ESLint, Prettier": npmCommand("run", "--silent", "check:ui"),
};
const parts = new Parts();
for (const [title, step] of Object.entries(checks))
  await parts.run(title, [step], { count: oneCount });
// It takes longer to build than all checks together, so only CI installs it.
if (succeeds("cargo", ["deny", "--version"]))
  await parts.run("cargo-deny", cargoDeny(), { count: oneCount });
else if (process.env.CI)
  await parts.run("cargo-deny", [INSTALL_DENY, ...cargoDeny()], {
    env: { ...process.env, RUSTC_WORKSPACE_WRAPPER: "" },
    count: oneCount,
  });
else parts.skip("cargo-deny", "it is not installed: cargo install --locked cargo-deny");
const { chromium, problem } = prepareBrowser();
if (problem) parts.skip("Pictures", problem);
else {
  const pictures = npmCommand("run", "--silent", "pictures", "--", "--check");
  await parts.run("Pictures", [pictures], {
    env: { ...process.env, CHROMIUM: chromium ?? "" },
    count: oneCount,
  });
}
parts.close(started);

/**
 * Checks licences, bans and sources of all dependencies. Checks advisories only against an existing
 * local copy, which is not updated.
 */
function cargoDeny() {
  const deny = (mode, ...checks) => [
    "cargo",
    ["deny", "--manifest-path", manifest, mode, "check", "--hide-inclusion-graph", ...checks],
  ];
  const copies = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "advisory-dbs");
  return [
    deny("--locked", "bans", "licenses", "sources"),
    ...(existsSync(copies) ? [deny("--offline", "advisories")] : []),
  ];
}
