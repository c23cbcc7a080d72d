// Finding and running programs, on every system.
import { spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { root } from "./root.mjs";

const isWindows = process.platform === "win32";

/**
 * Path of `command` on the PATH, or undefined. Windows also tries the extensions in PATHEXT. The
 * second argument is for tests.
 */
export function which(command, { env = process.env, windows = isWindows } = {}) {
  const endings = windows ? (env.PATHEXT ?? ".COM;.EXE;.BAT;.CMD").toLowerCase().split(";") : [""];
  const hasEnding = windows && endings.some((ending) => command.toLowerCase().endsWith(ending));
  const names = hasEnding ? [command] : endings.map((ending) => command + ending);
  return (env.PATH ?? env.Path ?? "")
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((file) => isProgram(file, windows));
}

function isProgram(file, windows) {
  try {
    if (!windows) accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** File name of a program built by cargo. */
export const executable = (name) => (isWindows ? `${name}.exe` : name);

/**
 * Returns npm as a program and its first arguments. On Windows npm is a .cmd file, which Node does
 * not start without a shell; its JavaScript runs everywhere. The argument is for tests.
 */
export function npm({ env = process.env, node = process.execPath, exists = existsSync } = {}) {
  // Set by npm itself. Other package managers set it to their own path.
  const running = env.npm_execpath;
  if (running && /[\\/]npm-cli\.js$/.test(running) && exists(running)) return [node, running];
  const beside = dirname(node);
  const cli = ["node_modules", "npm", "bin", "npm-cli.js"];
  const script = [join(beside, ...cli), join(dirname(beside), "lib", ...cli)].find(exists);
  return script ? [node, script] : ["npm"];
}

/** Command line of npm, for `must` and `Parts`. */
export function npmCommand(...args) {
  const [program, ...first] = npm();
  return [program, [...first, ...args]];
}

/** Command line of a package's program, by the path in its package.json. */
export function packageCommand(script, ...args) {
  return [process.execPath, [join(root, "node_modules", ...script.split("/")), ...args]];
}

/** Runs a program in the repository root with visible output. Exits if it fails. */
export function must(program, args, options = {}) {
  const done = spawnSync(program, args, { cwd: root, stdio: "inherit", ...options });
  if (done.error) fail(`${program}: ${done.error.message}`);
  if (done.status !== 0) process.exit(done.status ?? 1);
}

/** Runs a program silently. Returns true if it succeeds. */
export function succeeds(program, args) {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

export function fail(message) {
  console.error(`goldcrest: ${message}`);
  process.exit(1);
}
