import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Linter } from "eslint";
import { findBrowser } from "./browser.mjs";
import { root } from "./root.mjs";
import { rustProblem } from "./rust.mjs";
import { stampOf } from "./setup.mjs";
import {
  BUILD,
  GPU_TESTS,
  NAMES,
  WINDOW_TESTS,
  installCommand,
  rootPrefix,
  showsVulkanDevice,
} from "./system-packages.mjs";

const require = createRequire(import.meta.url);
const { nodeProblem } = require("./node-version.cjs");
const { engines, scripts } = require("../package.json");

test("each version of Node is taken or refused as package.json says", () => {
  for (const good of ["20.19.0", "20.20.2", "22.12.0", "22.13.1", "23.0.0", "24.0.0"])
    assert.equal(nodeProblem(good, engines.node), undefined, good);
  for (const bad of ["0.12.18", "8.17.0", "18.20.8", "20.18.3", "21.7.3", "22.11.0"])
    assert.match(nodeProblem(bad, engines.node), /is needed, this is /, bad);
  const sentence = nodeProblem("18.20.8", "^20.19 || >=22.12");
  assert.match(sentence, /^Node 20\.19, or 22\.12 or newer is needed, this is 18\.20\.8\. Get /);
});

test("Node is looked at before a script is parsed, in syntax that any Node has", () => {
  for (const [name, script] of Object.entries(scripts))
    if (script.includes(".scripts/"))
      assert.match(script, /^node -r \.\/\.scripts\/node-version\.cjs /, name);
  const text = readFileSync(join(root, ".scripts", "node-version.cjs"), "utf8");
  const languageOptions = { ecmaVersion: 5, sourceType: "commonjs" };
  assert.deepEqual(new Linter().verify(text, [{ languageOptions }]), []);
});

test("packages are installed again for another Node, system or lock file", () => {
  const system = { node: "v20.19.0", platform: "linux", arch: "x64" };
  const stamp = stampOf("lock", system);
  assert.equal(stampOf("lock", { ...system }), stamp);
  for (const other of [{ node: "v18.20.8" }, { platform: "darwin" }, { arch: "arm64" }])
    assert.notEqual(stampOf("lock", { ...system, ...other }), stamp);
  assert.notEqual(stampOf("another lock", system), stamp);
});

test("each state of Rust has a sentence that says what to run", () => {
  const rust = { needed: "1.95", hasCargo: true, isRustup: true, stderr: "" };
  const problem = (state) => rustProblem({ ...rust, ...state });
  for (const version of ["rustc 1.95.0 (59807616e)", "rustc 1.100.1", "rustc 2.0.0-nightly"])
    assert.equal(problem({ version }), undefined, version);
  assert.match(problem({ hasCargo: false }), /needed: install it from https:\/\/rustup\.rs$/);
  const old = { version: "rustc 1.85.0 (4d91de4e4)" };
  assert.match(problem(old), /1\.95 or newer is needed, this is 1\.85: run rustup update stable$/);
  assert.match(problem({ ...old, isRustup: false }), /of the system's packages: install rustup/);
  for (const stderr of [
    "error: rustup could not choose a version of rustc to run, because one wasn't specified explicitly, and no default is configured.",
    "error: toolchain 'stable-x86_64-unknown-linux-gnu' is not installed\nhelp: run",
  ])
    assert.match(problem({ stderr }), /no Rust yet: run rustup toolchain install stable$/);
  const broken = problem({ isRustup: false, stderr: "cannot execute\nmore" });
  assert.match(broken, /does not say its version \(cannot execute\): install Rust/);
});

test("every package manager installs all that a build and the window tests need", () => {
  for (const [manager, command] of Object.entries({
    apt: ["-qq", "install", "-y"],
    dnf: ["install", "-y"],
    pacman: ["-S", "--needed"],
    zypper: ["--non-interactive", "install"],
  })) {
    for (const need of [...BUILD, ...WINDOW_TESTS, ...GPU_TESTS, "chromium"])
      assert.notEqual(installCommand(manager, [need]).packages.length, 0, `${manager}: ${need}`);
    const { args, packages } = installCommand(manager, BUILD);
    assert.deepEqual(args.slice(0, command.length), command);
    assert.deepEqual(args.slice(-packages.length), packages);
    assert.ok(!installCommand(manager, NAMES).packages.includes(undefined));
  }
  const { packages } = installCommand("apt", BUILD);
  const needed = ["build-essential", "pkg-config", "libwebkit2gtk-4.1-dev", "libgtk-3-dev"];
  assert.deepEqual(packages, needed);
});

test("software Vulkan is wanted wherever no driver can show a device", () => {
  assert.ok(!showsVulkanDevice([], []));
  assert.ok(!showsVulkanDevice([], ["renderD128"]), "a card without a driver");
  assert.ok(!showsVulkanDevice(["nvidia_icd.json"], []), "a driver without a card");
  assert.ok(showsVulkanDevice(["nvidia_icd.json"], ["nvidia0"]));
  assert.ok(showsVulkanDevice(["radeon_icd.x86_64.json", "lvp_icd.x86_64.json"], []));
});

test("a package that was renamed is asked for by the name that this release has", () => {
  const driver = (known) => installCommand("apt", ["webDriver"], (name) => name === known).packages;
  assert.deepEqual(driver("webkit2gtk-driver"), ["webkit2gtk-driver"]);
  assert.deepEqual(driver("webkitgtk-webdriver"), ["webkitgtk-webdriver"]);
  assert.deepEqual(driver("neither"), ["webkit2gtk-driver"]);
});

test("sudo is used where it can ask or need not", () => {
  const prefix = (state) => rootPrefix({ uid: 1000, sudo: "/usr/bin/sudo", ...state });
  assert.deepEqual(rootPrefix({ uid: 0 }), []);
  assert.deepEqual(prefix({ asks: () => true }), ["sudo"]);
  assert.equal(prefix({ asks: () => false }), undefined);
  assert.equal(prefix({ sudo: undefined, asks: () => true }), undefined);
});

test("a browser is found on the PATH and among the applications, and a stub is none", () => {
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-browser-"));
  const program = (name, text) => {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
    return join(folder, name);
  };
  const find = (env, platform = "linux") =>
    findBrowser({ env: { PATH: folder, ...env }, platform });
  assert.equal(find({}), undefined);
  assert.equal(find({ CHROMIUM: "/my/own" }), "/my/own");
  program("chromium-browser", "#!/bin/sh\necho run: snap install chromium\n");
  assert.equal(find({}), undefined);
  symlinkSync(program("snap", "x".repeat(1 << 15)), join(folder, "chromium"));
  assert.equal(find({}), undefined, "all that a snap brings is a link to snap itself");
  const chrome = program("google-chrome", "#!/bin/sh\nexec /opt/google/chrome/chrome\n");
  assert.equal(find({}), chrome);
});
