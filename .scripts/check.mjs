// npm run check: how the code is written.  Every check runs, whatever the ones before it said.
import { Parts, oneCount } from "./parts.mjs";
import { npmCommand, packageCommand } from "./programs.mjs";
import { manifest } from "./root.mjs";
import { prepareBuild } from "./setup.mjs";
import { buildUi } from "./ui.mjs";

const started = Date.now();
prepareBuild();
buildUi();

const cargo = (...args) => ["cargo", [args[0], "--manifest-path", manifest, ...args.slice(1)]];
const checks = {
  rustfmt: cargo("fmt", "--all", "--check"),
  clippy: cargo("clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"),
  tidy: cargo("test", "--quiet", "--package", "tidy"),
  "Prettier for .scripts": packageCommand(
    "prettier/bin/prettier.cjs",
    ...["--config", "ui/prettier.config.js", "--check", ".scripts"],
  ),
  "Svelte, ESLint, Prettier": npmCommand("run", "--silent", "check:ui"),
};
const parts = new Parts();
for (const [title, step] of Object.entries(checks))
  await parts.run(title, [step], { count: oneCount });
parts.close(started);
