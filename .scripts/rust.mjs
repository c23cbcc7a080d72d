// The Rust toolchain: whether it can build the app, and what it has built.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, parse } from "node:path";
import { executable, fail, must, which } from "./programs.mjs";
import { manifest } from "./root.mjs";

/** Ends this program where Rust is missing or too old; else cargo is on the PATH afterwards. */
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

/** rustup puts Rust on the PATH of terminals that are opened later. */
function useCargoHome() {
  const folder = join(process.env.CARGO_HOME ?? join(homedir(), ".cargo"), "bin");
  if (!existsSync(join(folder, executable("cargo")))) return;
  console.log(`goldcrest: Rust is in ${folder}, which a new terminal will have on its PATH`);
  process.env.PATH = [folder, process.env.PATH].filter(Boolean).join(delimiter);
}

/** What has to be done before this Rust can build the app, or undefined. */
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

/** The app as cargo builds it under a profile. */
export const builtApp = (profile) => join(targetFolder(), profile, executable("goldcrest"));

/** The program that downloads for it, which has to lie beside it. */
export const builtDownloader = (profile) =>
  join(targetFolder(), profile, executable("goldcrest-fetch"));

/**
 * Lays a program where tauri packs it beside the app, and returns the name by which its configuration lists it: tauri looks for
 * one with the target in its name, and takes that out of it.
 */
export function packedBeside(program, folder, target = hostTarget()) {
  const { name, ext } = parse(program);
  mkdirSync(folder, { recursive: true });
  copyFileSync(program, join(folder, `${name}-${target}${ext}`));
  return join(folder, name);
}

/** How the app is built as it ships, with the program that downloads for it: both are `default-members`. Tauri's own program sets the variable for packages: so nothing is built twice. */
export const releaseBuild = {
  step: ["cargo", ["build", "--release", "--manifest-path", manifest]],
  env: { REMOVE_UNUSED_COMMANDS: dirname(manifest) },
};

/** The target that rustc builds for, such as `x86_64-unknown-linux-gnu`. */
export function hostTarget() {
  const asked = spawnSync("rustc", ["--version", "--verbose"], { encoding: "utf8" });
  const found = /^host: (\S+)$/m.exec(asked.stdout ?? "");
  if (!found) fail(`rustc --version: ${asked.error?.message ?? asked.stderr}`);
  return found[1];
}

/** Builds the app as it ships, and returns its path. */
export function buildRelease() {
  const app = builtApp("release");
  tellOfFirstBuild(app);
  must(...releaseBuild.step, { env: { ...process.env, ...releaseBuild.env } });
  return app;
}

/** Says what to expect where nothing has been built yet. */
export function tellOfFirstBuild(app, cost = "about ten minutes on two cores, and 2 GB of disk") {
  if (!existsSync(app)) console.log(`goldcrest: the first build takes ${cost}`);
}
