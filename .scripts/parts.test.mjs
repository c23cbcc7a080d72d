import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { countsOf } from "./parts.mjs";

test("cargo's lines are added up", () => {
  const output =
    "test result: ok. 21 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n" +
    "test result: FAILED. 15 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out\n";
  assert.deepEqual(countsOf("cargo")(output), { passed: 36, failed: 2, skipped: 1 });
});

test("a test that says it was skipped has not passed", () => {
  const output =
    "test a::b ... skipped: a::b: no Vulkan driver shows a device\nok\n" +
    "skipped: published_templates: no reference renders\n" +
    "test c ... ok\nnothing was skipped: that is all\n" +
    "test result: ok. 21 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n";
  assert.deepEqual(countsOf("cargo")(output), { passed: 19, failed: 0, skipped: 3 });
});

test("Vitest's line of tests is read, not the one of files", () => {
  const output =
    " Test Files  1 failed | 3 passed (4)\n      Tests  2 failed | 40 passed | 1 skipped (43)\n";
  assert.deepEqual(countsOf("vitest")(output), { passed: 40, failed: 2, skipped: 1 });
});

test("node's counts are read in both forms of report, and what was cancelled has failed", () => {
  const spec = "ℹ tests 9\nℹ suites 0\nℹ pass 7\nℹ fail 0\nℹ cancelled 1\nℹ skipped 1\nℹ todo 0\n";
  const tap = "# tests 1\n# suites 0\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n";
  assert.deepEqual(countsOf("node")(spec + tap), { passed: 8, failed: 1, skipped: 1 });
});

/** Runs parts in a child process. Returns its output and exit status. */
function close(...steps) {
  const script = `
    import { Parts, countsOf } from ${JSON.stringify(new URL("./parts.mjs", import.meta.url).href)};
    const parts = new Parts();
    for (const step of ${JSON.stringify(steps)})
      await parts.run("part", [[process.execPath, ["-e", step]]], { count: countsOf("cargo") });
    parts.close(Date.now());`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  return { status: done.status, output: done.stdout };
}

/** Runs parts in a child process. Returns its last line and exit status. */
function ending(...steps) {
  const { status, output } = close(...steps);
  return { status, last: output.trim().split("\n").at(-1) };
}

const well = 'console.log("test result: ok. 3 passed; 0 failed; 0 ignored;")';

test("the whole passes where every part does", () => {
  assert.deepEqual(ending(well, well), { status: 0, last: "6 passed, 0 failed" });
});

test("a part that crashes without a count fails the whole, and the next one still runs", () => {
  assert.deepEqual(ending("process.exit(3)", well), { status: 1, last: "3 passed, 1 failed" });
});

test("the end repeats why a part failed", () => {
  const { output } = close('console.log("the reason"); process.exit(3)', well);
  assert.equal(output.match(/the reason/g)?.length, 2);
  assert.match(output, /\npart failed:\nthe reason\n\n {20}/);
});

test("a step that hangs is killed with its children, and the next part still runs", () => {
  const sleeper = `
    import { spawn } from "node:child_process";
    spawn("sleep", ["600"], { stdio: "inherit" });
    console.log("begun");
    setTimeout(() => {}, 600_000);`;
  const script = `
    import { Parts, countsOf } from ${JSON.stringify(new URL("./parts.mjs", import.meta.url).href)};
    const parts = new Parts();
    const node = (script) => [process.execPath, ["--input-type=module", "-e", script]];
    const count = countsOf("cargo");
    await parts.run("hangs", [node(${JSON.stringify(sleeper)})], { count, silence: 2000 });
    await parts.run("next", [node(${JSON.stringify(well)})], { count });
    parts.close(Date.now());`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
    timeout: 60_000,
  });
  assert.equal(done.status, 1);
  assert.match(done.stdout, /^begun\n\nhung: nothing was printed for 2 s$/m);
  assert.equal(done.stdout.trim().split("\n").at(-1), "3 passed, 1 failed");
});

test("what was skipped is counted, and alone fails nothing", () => {
  const skipped = 'console.log("test result: ok. 0 passed; 0 failed; 2 ignored;")';
  assert.deepEqual(ending(skipped, well), { status: 0, last: "3 passed, 0 failed, 2 skipped" });
  const parts = `
    import { Parts } from ${JSON.stringify(new URL("./parts.mjs", import.meta.url).href)};
    const parts = new Parts();
    parts.skip("part", "a reason");
    parts.close(Date.now());`;
  const done = spawnSync(process.execPath, ["--input-type=module", "-e", parts], {
    encoding: "utf8",
  });
  assert.equal(done.status, 0);
  assert.match(done.stdout, /part: skipped: a reason/);
  assert.match(done.stdout, /^0 passed, 0 failed, 1 skipped$/m);
});

test("a test that passed at a second try is named", () => {
  const flaky = `console.log("flaky: a search"); ${well}`;
  const { status, output } = close(flaky);
  assert.equal(status, 0);
  assert.match(output, /^part: passed at a second try: flaky: a search$/m);
});

test("a part that ran nothing fails the whole", () => {
  assert.deepEqual(ending("0", well), { status: 1, last: "3 passed, 1 failed" });
});
