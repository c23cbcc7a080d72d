// Prepares a machine for building and testing. Uses only Node's own modules, since it runs before
// `npm ci`.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findBrowser } from "./browser.mjs";
import { fetchBundledModel } from "./bundled-model.mjs";
import { must, npmCommand, packageCommand, succeeds, which } from "./programs.mjs";
import { root } from "./root.mjs";
import { checkRust } from "./rust.mjs";
import {
  ARM_TESTS,
  BUILD,
  GPU_TESTS,
  SERVER_TESTS,
  WINDOW_TESTS,
  requirePackages,
  wantPackages,
} from "./system-packages.mjs";

const ARM_TARGET = "aarch64-unknown-linux-gnu";

/** Prepares the machine for building the app. */
export function prepareBuild() {
  checkRust();
  requirePackages(BUILD);
  installNodeModules();
  const problem = fetchBundledModel();
  if (problem)
    console.log(
      `goldcrest: the small model that comes with the app is not here, and the app works without it: ${problem}`,
    );
}

/**
 * Prepares the machine for building and testing. Returns the Chromium for the UI tests (undefined:
 * playwright's own), and the reason why a part of the tests cannot run, by part.
 */
export function prepareTests() {
  prepareBuild();
  const window =
    process.platform === "linux"
      ? wantPackages(WINDOW_TESTS)
      : "the web view of this system has no driver that the tests could use";
  wantPackages(GPU_TESTS);
  wantPackages(SERVER_TESTS);
  installPythonPackages();
  installEditorClient();
  const { chromium, problem } = prepareBrowser();
  return { chromium, cannot: { window, browser: problem } };
}

/** Finds the system's browser, or installs the system's package, or downloads playwright's own. */
export function prepareBrowser() {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  // Ubuntu only has a stub for the snap.
  if (!findBrowser() && !/^ID=ubuntu$/m.test(release)) wantPackages(["chromium"]);
  const chromium = findBrowser();
  if (chromium) return { chromium };
  console.log("goldcrest: downloading Chromium for the tests");
  const [program, args] = packageCommand(
    "playwright-core/cli.js",
    "install",
    "chromium-headless-shell",
  );
  if (spawnSync(program, args, { stdio: "inherit" }).status === 0) return {};
  return {
    problem:
      "no Chromium is here and none could be downloaded; install one, or set CHROMIUM to its path",
  };
}

/**
 * Prepares the machine for aarch64 tests. Returns the compiler, or the reason why there is none.
 */
export function prepareArm() {
  if (process.platform !== "linux") return { problem: "qemu runs programs of Linux on Linux only" };
  checkRust();
  const problem = wantPackages(ARM_TESTS);
  if (problem) return { problem };
  if (hasArm("rustc")) return { rustc: "rustc" };
  spawnSync("rustup", ["target", "add", ARM_TARGET], { stdio: "inherit" });
  if (hasArm("rustc")) return { rustc: "rustc" };
  // Debian maintains a current compiler for its browsers. It requires a foreign architecture, which
  // should not be added to a personal machine without consent.
  if (process.env.CI && which("apt-get") && process.getuid() === 0) {
    const apt = ["-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
    spawnSync("dpkg", ["--add-architecture", "arm64"], { stdio: "inherit" });
    spawnSync("apt-get", ["-qq", "update"], { stdio: "inherit" });
    spawnSync("apt-get", [...apt, "install", "rustc-web", "libstd-rust-web-dev:arm64"], {
      stdio: "inherit",
    });
    if (hasArm("/usr/bin/rustc")) return { rustc: "/usr/bin/rustc" };
  }
  return { problem: "neither rustup nor apt has the standard library for aarch64" };
}

/** Checks if this compiler has the standard library for aarch64. */
function hasArm(rustc) {
  const asked = spawnSync(rustc, ["--print", "target-libdir", "--target", ARM_TARGET], {
    encoding: "utf8",
  });
  const folder = asked.stdout?.trim();
  return Boolean(folder) && existsSync(folder);
}

/**
 * Properties of the system that also determine what npm installs: it omits packages for other
 * systems.
 */
const system = { node: process.version, platform: process.platform, arch: process.arch };

/** Stamp of an installation, to check if it is up to date. */
export function stampOf(lock, { node, platform, arch } = system) {
  const hash = createHash("sha256").update(lock).digest("hex");
  return `${JSON.stringify({ lock: hash, node, platform, arch })}\n`;
}

/** Packages of Python that the tests use: the SDK of a server with tools, and clients of the local API. */
const PYTHON_PACKAGES = ["mcp==2.3.0", "openai==3.57.0", "llm==0.36"];
/** Client of the local API in an editor. */
const EDITOR_CLIENT = "@continuedev/openai-adapters@1.37.0";

/** Makes an environment of Python with these packages. Without it the tests that use it are skipped. */
function installPythonPackages() {
  const folder = join(root, "src-tauri", "target", "tmp", "python");
  const installed = join(folder, "installed.json");
  const stamp = JSON.stringify(PYTHON_PACKAGES);
  if (existsSync(installed) && readFileSync(installed, "utf8") === stamp) return;
  console.log(`goldcrest: installing packages of Python: ${PYTHON_PACKAGES.join(" ")}`);
  const python = join(folder, "bin", "python");
  if (
    succeeds("python3", ["-m", "venv", "--clear", folder]) &&
    succeeds(python, ["-m", "pip", "install", "--quiet", ...PYTHON_PACKAGES])
  )
    writeFileSync(installed, stamp);
  else console.log("goldcrest: they could not be installed; the tests that use them are skipped");
}

/** Installs the client of an editor. Without it the test that uses it is skipped. */
function installEditorClient() {
  const folder = join(root, "src-tauri", "target", "tmp", "continue");
  if (existsSync(join(folder, "node_modules"))) return;
  console.log(`goldcrest: installing ${EDITOR_CLIENT}`);
  const [program, args] = npmCommand(
    ...["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--silent"],
    EDITOR_CLIENT,
  );
  mkdirSync(folder, { recursive: true });
  if (!succeeds(program, args))
    console.log("goldcrest: it could not be installed; the test that uses it is skipped");
}

function installNodeModules() {
  const stamp = stampOf(readFileSync(join(root, "package-lock.json")));
  const installed = join(root, "node_modules", ".installed-from.json");
  if (existsSync(installed) && readFileSync(installed, "utf8") === stamp) return;
  console.log("goldcrest: installing npm packages");
  must(...npmCommand("ci", "--no-audit", "--no-fund"));
  writeFileSync(installed, stamp);
}
