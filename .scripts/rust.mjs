// The Rust toolchain: its version, and the programs that it builds.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, parse } from "node:path";
import { executable, fail, must, which } from "./programs.mjs";
import { manifest } from "./root.mjs";

/** Exits if Rust is missing or too old. Otherwise cargo is on the PATH afterwards. */
export function checkRust() {
  if (!which("cargo")) useCargoHome();
  const cargo = which("cargo");
  const asked = cargo && spawnSync("rustc", ["--version"], { encoding: "utf8" });
  const problem = rustProblem({
    needed: /rust-version = "(.+?)"/.exec(readFileSync(manifest, "utf8"))[1],
    hasCargo: Boolean(cargo),
    isRustup: Boolean(cargo) && existsSync(join(dirname(cargo), executable("rustup"))),
    version: asked?.status === 0 ? asked.stdout : undefined,
    stderr: asked?.stderr ?? asked?.error?.message ?? "",
  });
  if (problem) fail(`${problem}, then run this again`);
}

/** Adds cargo's folder to the PATH, since rustup only does so for terminals opened later. */
function useCargoHome() {
  const folder = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "bin");
  if (!existsSync(join(folder, executable("cargo")))) return;
  console.log(`goldcrest: Rust is in ${folder}, which a new terminal will have on its PATH`);
  process.env.PATH = [folder, process.env.PATH].filter(Boolean).join(delimiter);
}

/** Instruction to fix an unsuitable Rust, or undefined. */
export function rustProblem({ needed, hasCargo, isRustup, version, stderr }) {
  if (!hasCargo) return `Rust ${needed} or newer is needed: install it from https://rustup.rs`;
  const found = /(\d+)\.(\d+)/.exec(version ?? "");
  if (!found) {
    if (isRustup && /no default is configured|is not installed/.test(stderr))
      return "rustup has no Rust yet: run rustup toolchain install stable";
    return `rustc does not say its version (${stderr.split("\n", 1)[0]}): install Rust from https://rustup.rs`;
  }
  const [major, minor] = needed.split(".").map(Number);
  const isNew = +found[1] > major || (+found[1] === major && +found[2] >= minor);
  if (isNew) return undefined;
  const old = `Rust ${needed} or newer is needed, this is ${found[0]}`;
  return isRustup
    ? `${old}: run rustup update stable`
    : `${old} of the system's packages: install rustup from them or from https://rustup.rs`;
}

/** Target folder of cargo, including the user's configuration. */
export function targetFolder() {
  const asked = spawnSync(
    "cargo",
    ["metadata", "--format-version=1", "--no-deps", "--manifest-path", manifest],
    { encoding: "utf8", maxBuffer: 1 << 26 },
  );
  if (asked.status !== 0) fail(`cargo metadata: ${asked.error?.message ?? asked.stderr}`);
  return JSON.parse(asked.stdout).target_directory;
}

/** Path of the app as cargo builds it under a profile. */
export const builtApp = (profile) => join(targetFolder(), profile, executable("goldcrest"));

/** Paths of the app's downloader and its local API, which must be in the same folder. */
export const builtCompanions = (profile) =>
  ["goldcrest-fetch", "goldcrest-serve"].map((name) =>
    join(targetFolder(), profile, executable(name)),
  );

/**
 * Copies a program for tauri to pack with the app, and returns its name for the configuration.
 * Tauri expects the target in the file name, and removes it from the package.
 */
export function packedBeside(program, folder, target = hostTarget()) {
  const { name, ext } = parse(program);
  mkdirSync(folder, { recursive: true });
  copyFileSync(program, join(folder, `${name}-${target}${ext}`));
  return join(folder, name);
}

/**
 * Release build of the app and its companions, the `default-members`. The variable is the one that
 * Tauri's CLI sets for packages, so that nothing is built twice.
 */
export const releaseBuild = {
  step: ["cargo", ["build", "--release", "--manifest-path", manifest]],
  env: { REMOVE_UNUSED_COMMANDS: dirname(manifest) },
};

/** Target of rustc, such as `x86_64-unknown-linux-gnu`. */
export function hostTarget() {
  const asked = spawnSync("rustc", ["--version", "--verbose"], { encoding: "utf8" });
  const found = /^host: (\S+)$/m.exec(asked.stdout ?? "");
  if (!found) fail(`rustc --version: ${asked.error?.message ?? asked.stderr}`);
  return found[1];
}

/** Builds the release, and returns the path of the app. */
export function buildRelease() {
  const app = builtApp("release");
  tellOfFirstBuild(app);
  must(...releaseBuild.step, { env: { ...process.env, ...releaseBuild.env } });
  return app;
}

/** Prints the expected cost of a first build. */
export function tellOfFirstBuild(app, cost = "about ten minutes on two cores, and 2 GB of disk") {
  if (!existsSync(app)) console.log(`goldcrest: the first build takes ${cost}`);
}
