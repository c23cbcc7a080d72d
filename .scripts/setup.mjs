// What has to be on the machine before the app can be built or tested.  Plain Node: it runs before `npm ci`.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fail, must, root, which } from "./root.mjs";

/** Debian's and Ubuntu's packages, and what shows that each is there without asking dpkg. */
const BUILD = ["build-essential", "pkg-config", "libwebkit2gtk-4.1-dev", "libgtk-3-dev"];
const WINDOW_TESTS = ["webkit2gtk-driver", "xvfb", "dbus"];
/** Vulkan on the processor. A machine of one's own keeps the drivers that it has. */
const SOFTWARE_GPU = process.env.CI ? ["libvulkan1", "mesa-vulkan-drivers"] : [];
/** A compiler's back half and a processor for aarch64. */
const ARM = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];
const ARM_TARGET = "aarch64-unknown-linux-gnu";
const BROWSERS = ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome"];

/** Makes the machine ready to build the app. */
export function prepareBuild() {
  checkToolchain();
  installMissing(BUILD);
  installNodeModules();
}

/** Makes the machine ready to build and to test; returns the Chromium that the UI tests drive. */
export function prepareTests() {
  checkToolchain();
  const browser = process.env.CHROMIUM ?? BROWSERS.map(which).find(Boolean);
  const missing = browser ? [] : [browserPackage()];
  installMissing([...BUILD, ...WINDOW_TESTS, ...SOFTWARE_GPU, ...missing]);
  installNodeModules();
  return (
    browser ??
    BROWSERS.map(which).find(Boolean) ??
    fail("no Chromium after installing one; set CHROMIUM to its path")
  );
}

/** Makes the machine ready to build and run tests for aarch64; returns the compiler, or undefined where there is
 * no standard library to be had. */
export function prepareArm() {
  checkToolchain();
  installMissing(ARM);
  if (hasArm("rustc")) return "rustc";
  spawnSync("rustup", ["target", "add", ARM_TARGET], { stdio: "inherit" });
  if (hasArm("rustc")) return "rustc";
  // Debian keeps a current compiler for its browsers. It brings packages of another architecture, which a
  // machine of one's own had better not get unasked.
  if (process.env.CI && which("apt-get") && process.getuid() === 0) {
    const apt = ["-qq", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
    spawnSync("dpkg", ["--add-architecture", "arm64"], { stdio: "inherit" });
    spawnSync("apt-get", ["-qq", "update"], { stdio: "inherit" });
    spawnSync("apt-get", [...apt, "install", "rustc-web", "libstd-rust-web-dev:arm64"], {
      stdio: "inherit",
    });
    if (hasArm("/usr/bin/rustc")) return "/usr/bin/rustc";
  }
  return undefined;
}

/** Whether this compiler has the standard library for aarch64. */
function hasArm(rustc) {
  const asked = spawnSync(rustc, ["--print", "target-libdir", "--target", ARM_TARGET], {
    encoding: "utf8",
  });
  const folder = asked.stdout?.trim();
  return Boolean(folder) && existsSync(folder);
}

function checkToolchain() {
  if (!which("cargo")) fail("Rust is needed (https://rustup.rs), then run this again");
  const needed = /rust-version = "(.+?)"/.exec(
    readFileSync(join(root, "src-tauri", "Cargo.toml"), "utf8"),
  )[1];
  const found = /(\d+)\.(\d+)/.exec(
    spawnSync("rustc", ["--version"], { encoding: "utf8" }).stdout ?? "",
  );
  const [major, minor] = needed.split(".").map(Number);
  if (
    !found ||
    Number(found[1]) < major ||
    (Number(found[1]) === major && Number(found[2]) < minor)
  )
    fail(
      `Rust ${needed} or newer is needed, this is ${found?.[0] ?? "unknown"}: run rustup update`,
    );
}

/** Ubuntu's package of the name "chromium" does not exist; its own one brings the snap. */
function browserPackage() {
  const system = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  return /^ID=ubuntu$/m.test(system) ? "chromium-browser" : "chromium";
}

function installMissing(packages) {
  if (process.platform !== "linux") return;
  if (!which("apt-get")) {
    const isThere = spawnSync("pkg-config", ["--exists", "webkit2gtk-4.1"]).status === 0;
    if (!isThere)
      fail(
        `this is not Debian or Ubuntu; install what these packages hold, then run this again: ${packages.join(" ")}`,
      );
    return;
  }
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  console.log(`goldcrest: installing system packages: ${missing.join(" ")}`);
  const isRoot = process.getuid() === 0;
  if (!isRoot && !which("sudo")) fail(`run as root: apt-get install ${missing.join(" ")}`);
  const apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"];
  if (!isRoot) apt.unshift("sudo");
  // One source out of reach must not stop us: the packages may come from another.
  spawnSync(apt[0], [...apt.slice(1), "update"], { stdio: "inherit" });
  const install = ["install", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"];
  must(apt[0], [...apt.slice(1), ...install, ...missing]);
}

function isInstalled(name) {
  const asked = spawnSync("dpkg-query", ["-W", "-f", "${db:Status-Status}", name], {
    encoding: "utf8",
  });
  return asked.status === 0 && asked.stdout === "installed";
}

/** A copy of the lock file beside what was installed from it tells whether that is still what it asks for. */
function installNodeModules() {
  const lock = readFileSync(join(root, "package-lock.json"));
  const installed = join(root, "node_modules", ".installed-from.json");
  if (existsSync(installed) && readFileSync(installed).equals(lock)) return;
  console.log("goldcrest: installing npm packages");
  must("npm", ["ci", "--no-audit", "--no-fund"]);
  writeFileSync(installed, lock);
}
