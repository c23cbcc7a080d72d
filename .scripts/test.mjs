// npm test: prepares the machine and runs all tests. If a part fails, the others still run, and the
// whole fails. `npm test -- rust window` runs only these parts.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { asAnotherUser } from "./another-user.mjs";
import { Parts, countsOf, oneCount } from "./parts.mjs";
import { fail, npmCommand } from "./programs.mjs";
import { manifest, root } from "./root.mjs";
import { builtApp, releaseBuild, tellOfFirstBuild } from "./rust.mjs";
import { prepareTests } from "./setup.mjs";
import { hasSoftwareVulkan } from "./system-packages.mjs";
import { buildUi } from "./ui.mjs";

const started = Date.now();
const { chromium, cannot } = prepareTests();
buildUi();
const app = builtApp("debug");
tellOfFirstBuild(app, "about a quarter of an hour on two cores, and 6 GB of disk");

const npm = (script) => npmCommand("run", "--silent", script);
const cargo = (command, ...args) => [
  "cargo",
  [command, "--workspace", "--manifest-path", manifest, ...args],
];
// In CI clippy compiles the workspace, so that the checks need not compile it again.
const lints = process.env.CI ? { RUSTC_WORKSPACE_WRAPPER: "clippy-driver" } : {};
const env = {
  ...process.env,
  ...lints,
  CHROMIUM: chromium,
  // The same binary that cargo builds for the Rust tests, so that one build serves both.
  GOLDCREST_BINARY: app,
};

const onSoftwareVulkan = hasSoftwareVulkan();
// Software Vulkan always provides a device, so a test that finds none fails.
const needGpu = onSoftwareVulkan ? { GOLDCREST_NEED_GPU: "1" } : {};

/** Tests that run each kernel: products in all formats, prompts and single tokens of a model. */
const WIDTH_DEPENDENT = [
  "products_on_the_gpu",
  "products_of_several",
  "do_not_depend_on_the_chunk_size",
  "tokens_one_by_one",
];

/** GPU tests on Mesa's software Vulkan with this many lanes per subgroup. */
const gpu = (lanes) => ({
  title: `GPU, ${lanes} lanes a subgroup`,
  problem: onSoftwareVulkan ? undefined : "only Mesa's software Vulkan can be made so wide",
  runner: "cargo",
  // The whole workspace, since for a part of it cargo would build dependencies again with other
  // features.
  steps: [cargo("test", "--no-fail-fast", "--tests", "--", "--nocapture", ...WIDTH_DEPENDENT)],
  env: { LP_NATIVE_VECTOR_WIDTH: `${32 * lanes}`, ...needGpu },
});

/** Tests that a missing driver may change, and those that need root to mount a disk. */
const WITHOUT_DRIVER = ["gpu", "device", "every_command", "crowded", "disk"];

/**
 * Parts in their order. A budget is the time in seconds that a part may take on two cores, without
 * the build.
 */
const all = {
  scripts: {
    title: "Scripts and models",
    runner: "node",
    steps: [[process.execPath, ["--test", ...scriptTests(), "models/manifest.test.js"]]],
  },
  ui: { title: "UI: units", runner: "vitest", steps: [npm("test:ui")] },
  browser: {
    title: "UI: Chromium",
    runner: "node",
    problem: cannot.browser,
    steps: [npm("test:ui:browser")],
    budget: 360,
  },
  build: {
    title: "Rust: build",
    steps: [cargo("build", ...(process.env.CI ? ["--all-targets"] : ["--bins", "--tests"]))],
  },
  rust: {
    title: "Rust: tests",
    runner: "cargo",
    steps: [cargo("test", "--no-fail-fast", "--tests", ...(process.env.CI ? asAnotherUser() : []))],
    env: needGpu,
    budget: 480,
  },
  bare: {
    title: "Rust, without a Vulkan driver",
    runner: "cargo",
    problem: process.platform === "linux" ? undefined : "only Linux lets a driver be hidden so",
    steps: [cargo("test", "--no-fail-fast", "--tests", "--", ...WITHOUT_DRIVER)],
    // Variable of current loaders, and that of loaders before 2022.
    env: { VK_DRIVER_FILES: "/dev/null", VK_ICD_FILENAMES: "/dev/null" },
  },
  again: {
    title: "A second build",
    runner: "node",
    steps: [
      cargo("build", "--bins", "--tests"),
      [process.execPath, ["--test", ".scripts/second-build.mjs"]],
    ],
  },
  arm: {
    title: "Kernels for aarch64",
    runner: "parts",
    steps: [npm("test:arm")],
    env: { RUSTC_WORKSPACE_WRAPPER: "" },
  },
  // Mesa's default is 8 lanes on every CPU with AVX, which the part "Rust" covers.
  gpu4: gpu(4),
  gpu16: gpu(16),
  window: {
    title: "Window",
    runner: "node",
    problem: cannot.window,
    steps: [cargo("build", "--bins", "--tests"), npm("test:window")],
    budget: 480,
  },
  clients: {
    title: "Clients of the API",
    runner: "node",
    steps: [cargo("build", "--bins", "--tests"), npm("test:clients")],
  },
  release: {
    title: "Window, release build",
    runner: "node",
    problem: cannot.window,
    steps: [releaseBuild.step, npm("test:window")],
    env: { GOLDCREST_BINARY: builtApp("release"), ...releaseBuild.env },
  },
  check: { title: "Checks", runner: "parts", steps: [npm("check")] },
};
// The checks need clippy and rustfmt, which not every user has, and judge style, not behaviour.
// Tests for another architecture do not show if the app works on this one. The tests without a
// driver run again; one machine covers this for all. A release build compiles everything again, so
// it is tested only on request.
const CI_ONLY = ["bare", "arm", "check"];
const usual = Object.keys(all).filter(
  (name) => name !== "release" && (process.env.CI || !CI_ONLY.includes(name)),
);
const chosen = process.argv.length > 2 ? process.argv.slice(2) : usual;
for (const name of chosen)
  if (!all[name]) fail(`no such part: ${name}; there are ${Object.keys(all).join(", ")}`);

const parts = new Parts();
for (const { title, runner, steps, env: more, problem, budget } of chosen.map(
  (name) => all[name],
)) {
  // A missing dependency is a failure where this script may install everything.
  if (problem && process.env.CI && process.platform === "linux") fail(`${title}: ${problem}`);
  if (problem) parts.skip(title, problem);
  else {
    const count = runner ? countsOf(runner) : oneCount;
    await parts.run(title, steps, { env: { ...env, ...more }, count, budget });
  }
}
if (!chosen.includes("check"))
  console.log("\nThe checks of how the code is written were left out: npm run check");
parts.close(started);

function scriptTests() {
  const names = readdirSync(join(root, ".scripts")).filter((name) => name.endsWith(".test.mjs"));
  return names.map((name) => `.scripts/${name}`);
}
