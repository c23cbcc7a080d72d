import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { must, npmCommand } from "./programs.mjs";
import { root } from "./root.mjs";

const OUTPUTS = ["dist/index.html", "dist-export/answers.js"].map((name) => join(root, "ui", name));
const NOT_INPUT = new Set([
  "dist",
  "dist-fake",
  "dist-export",
  "tests",
  "screenshots",
  "node_modules",
]);

/**
 * Builds the UI if a source is newer than the last build. Cargo embeds the built files and checks
 * their times, so that a redundant build here costs a redundant link.
 */
export function buildUi() {
  const times = OUTPUTS.map((file) => (existsSync(file) ? statSync(file).mtimeMs : 0));
  const built = Math.min(...times);
  const sources = readdirSync(join(root, "ui")).filter((name) => !NOT_INPUT.has(name));
  const changed = [
    join(root, "package-lock.json"),
    // Inputs of the licences: the dependencies, and the code that collects them.
    join(root, "src-tauri", "Cargo.lock"),
    join(root, ".scripts", "licences.mjs"),
    join(root, ".scripts", "licences-plugin.mjs"),
    ...sources.map((name) => join(root, "ui", name)),
  ].map(newest);
  if (Math.max(...changed) > built) must(...npmCommand("run", "--silent", "build:ui"));
}

/** Time of the last change at or under `path`. A folder's own time includes removals. */
function newest(path) {
  const entry = statSync(path);
  if (!entry.isDirectory()) return entry.mtimeMs;
  return Math.max(entry.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
