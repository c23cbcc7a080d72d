import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's top folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The cargo workspace. */
export const manifest = join(root, "src-tauri", "Cargo.toml");

/** Where `command` lies on the PATH, or undefined. */
export function which(command) {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, command))
    .find(existsSync);
}

/** Where cargo puts what it builds, whatever the user has configured. */
export function targetFolder() {
  const asked = spawnSync(
    "cargo",
    ["metadata", "--format-version=1", "--no-deps", "--manifest-path", manifest],
    { encoding: "utf8", maxBuffer: 1 << 26 },
  );
  if (asked.status !== 0) fail(`cargo metadata: ${asked.error?.message ?? asked.stderr}`);
  return JSON.parse(asked.stdout).target_directory;
}

/** Runs a program in the top folder, in the user's sight; ends this one where it fails. */
export function must(program, args, options = {}) {
  const done = spawnSync(program, args, { cwd: root, stdio: "inherit", ...options });
  if (done.error) fail(`${program}: ${done.error.message}`);
  if (done.status !== 0) process.exit(done.status ?? 1);
}

export function fail(message) {
  console.error(`goldcrest: ${message}`);
  process.exit(1);
}
