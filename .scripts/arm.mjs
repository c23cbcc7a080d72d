// npm run test:arm: the kernel tests for aarch64, on an x86-64 machine under qemu. The crate's unit
// tests are excluded: building them takes longer than running all the tests.
import { manifest } from "./root.mjs";
import { Parts, countsOf } from "./parts.mjs";
import { prepareArm } from "./setup.mjs";

/**
 * CPUs of qemu, and the best level that each must be detected to support. The one with all levels
 * runs every test at every level; the others only the tests that reveal a wrongly detected level.
 */
const PROCESSORS = [
  { cpu: "max", level: "i8mm", tests: [] },
  { cpu: "neoverse-n1", level: "dotprod", tests: ["levels", "bit_identical"] },
  { cpu: "cortex-a72", level: "neon", tests: ["levels", "bit_identical"] },
];

const started = Date.now();
const parts = new Parts();
const { rustc, problem } = prepareArm();
for (const { cpu, level, tests } of PROCESSORS) {
  const title = `aarch64: ${cpu}`;
  if (problem) {
    parts.skip(title, problem);
    continue;
  }
  const step = [
    "cargo",
    [
      ...["test", "--manifest-path", manifest, "--target", "aarch64-unknown-linux-gnu"],
      ...["-p", "kernels", "--test", "battery", "--", ...tests],
    ],
  ];
  const env = {
    ...process.env,
    RUSTC: rustc,
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: "aarch64-linux-gnu-gcc",
    CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: `qemu-aarch64 -L /usr/aarch64-linux-gnu -cpu ${cpu}`,
    GOLDCREST_NEED_LEVEL: level,
  };
  await parts.run(title, [step], { env, count: countsOf("cargo") });
}
parts.close(started);
