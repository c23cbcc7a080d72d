// What has to be on the machine before the app can be built or tested.  Plain Node: it runs before `npm ci`.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findBrowser } from "./browser.mjs";
import { fetchBundledModel } from "./bundled-model.mjs";
import { must, npmCommand, packageCommand, which } from "./programs.mjs";
import { root } from "./root.mjs";
import { checkRust } from "./rust.mjs";
import {
  ARM_TESTS,
  BUILD,
  GPU_TESTS,
  WINDOW_TESTS,
  requirePackages,
  wantPackages,
} from "./system-packages.mjs";

const ARM_TARGET = "aarch64-unknown-linux-gnu";

/** Makes the machine ready to build the app. */
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
 * Makes the machine ready to build and to test. Returns the Chromium that the UI tests drive (undefined: playwright's
 * own), and by part of the tests why it cannot run here.
 */
export function prepareTests() {
  prepareBuild();
  const window =
    process.platform === "linux"
      ? wantPackages(WINDOW_TESTS)
      : "the web view of this system has no driver that the tests could use";
  wantPackages(GPU_TESTS);
  const { chromium, problem } = prepareBrowser();
  return { chromium, cannot: { window, browser: problem } };
}

/** The system's browser, else the system's package, else the one that playwright downloads. */
export function prepareBrowser() {
  const release = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  // Ubuntu has no such package but the snap's.
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

/** Makes the machine ready to build and run tests for aarch64; returns the compiler, or why there is none. */
export function prepareArm() {
  if (process.platform !== "linux") return { problem: "qemu runs programs of Linux on Linux only" };
  checkRust();
  const problem = wantPackages(ARM_TESTS);
  if (problem) return { problem };
  if (hasArm("rustc")) return { rustc: "rustc" };
  spawnSync("rustup", ["target", "add", ARM_TARGET], { stdio: "inherit" });
  if (hasArm("rustc")) return { rustc: "rustc" };
  // Debian keeps a current compiler for its browsers. It brings packages of another architecture, which a
  // machine of one's own had better not get unasked.
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

/** Whether this compiler has the standard library for aarch64. */
function hasArm(rustc) {
  const asked = spawnSync(rustc, ["--print", "target-libdir", "--target", ARM_TARGET], {
    encoding: "utf8",
  });
  const folder = asked.stdout?.trim();
  return Boolean(folder) && existsSync(folder);
}

/** What npm makes of a lock file depends on these too: it leaves out packages that are not for them. */
const system = { node: process.version, platform: process.platform, arch: process.arch };

/** What stands beside what was installed, and tells whether that is still what is asked for. */
export function stampOf(lock, { node, platform, arch } = system) {
  const hash = createHash("sha256").update(lock).digest("hex");
  return `${JSON.stringify({ lock: hash, node, platform, arch })}\n`;
}

function installNodeModules() {
  const stamp = stampOf(readFileSync(join(root, "package-lock.json")));
  const installed = join(root, "node_modules", ".installed-from.json");
  if (existsSync(installed) && readFileSync(installed, "utf8") === stamp) return;
  console.log("goldcrest: installing npm packages");
  must(...npmCommand("ci", "--no-audit", "--no-fund"));
  writeFileSync(installed, stamp);
}
