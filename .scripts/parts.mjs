import { spawn } from "node:child_process";
import { root } from "./root.mjs";

/** Patterns for passed, failed and skipped tests in the last lines of each runner. */
const RUNNERS = {
  cargo: {
    line: /^test result: .*?(\d+) passed; (\d+) failed; (\d+) ignored/gm,
    counts: ([, passed, failed, skipped]) => ({ passed, failed, skipped }),
    // libtest cannot skip at run time: a test without a driver or data prints this
    // (crates/testing) and passes.
    skipped: /\bskipped: [\w:]+: /g,
  },
  // "Tests  1 failed | 40 passed | 2 skipped (43)"
  vitest: {
    line: /^\s*Tests\s{2}(.*\(\d+\))/gm,
    counts: ([, text]) => {
      const of = (word) => new RegExp(`(\\d+) ${word}`).exec(text)?.[1] ?? 0;
      return { passed: of("passed"), failed: of("failed"), skipped: of("skipped") };
    },
  },
  // node:test, in both of its report formats.
  node: {
    line: /^[#ℹ] pass (\d+)\n[#ℹ] fail (\d+)\n[#ℹ] cancelled (\d+)\n[#ℹ] skipped (\d+)/gm,
    counts: ([, passed, failed, cancelled, skipped]) => ({
      passed,
      failed: +failed + +cancelled,
      skipped,
    }),
  },
  // Printed by `Parts.close`.
  parts: {
    line: /^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/gm,
    counts: ([, passed, failed, skipped = 0]) => ({ passed, failed, skipped }),
  },
};

/** Lines of a failed part that its end repeats. */
const LAST_LINES = 30;

/** Silence after which a step has hung: no compiler and no test is silent for so long. */
const SILENCE_MS = 15 * 60_000;

/** Signals that end `npm test`, and what it runs. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Sums up the counts in a runner's output. */
export function countsOf(runner) {
  const { line, counts, skipped } = RUNNERS[runner];
  return (output) => {
    const sum = { passed: 0, failed: 0, skipped: 0 };
    for (const match of output.matchAll(line))
      for (const [key, value] of Object.entries(counts(match))) sum[key] += Number(value);
    const said = skipped ? [...output.matchAll(skipped)].length : 0;
    return { ...sum, passed: sum.passed - said, skipped: sum.skipped + said };
  };
}

/** Counts a step that only succeeds or fails. */
export function oneCount(_output, succeeded) {
  return { passed: Number(succeeded), failed: Number(!succeeded), skipped: 0 };
}

/** Runs parts one after another, regardless of failures, and closes with a table. */
export class Parts {
  #rows = [];

  /**
   * Runs the steps of a part until one fails. A step that prints nothing for too long is killed. The
   * end names a part that takes longer than its budget, and tests that passed at a second try
   * (`flaky: NAME`).
   */
  async run(title, steps, { env = process.env, count, budget = Infinity, silence = SILENCE_MS }) {
    console.log(`\n\u2500\u2500 ${title} ${"\u2500".repeat(Math.max(0, 76 - title.length))}`);
    const started = Date.now();
    let output = "";
    let status = 0;
    for (const [program, args] of steps) {
      const step = await runStep(program, args, env, silence);
      output += step.output;
      status = step.status;
      if (status !== 0) break;
    }
    const seconds = (Date.now() - started) / 1000;
    const flaky = [...output.matchAll(/\bflaky: .*/g)].map(String);
    const row = { title, seconds, budget, flaky, output, ...count(output, status === 0) };
    // A failed build or a crashed runner reports no failed test.
    if (status !== 0 && row.failed === 0) row.failed = 1;
    // A runner that found no tests must not count as passed.
    if (status === 0 && row.passed + row.skipped === 0) row.failed = 1;
    this.#rows.push(row);
  }

  /** Reports why a part cannot run here, and counts it as skipped. */
  skip(title, reason) {
    console.log(`\n${title}: skipped: ${reason}`);
    this.#rows.push({ title, seconds: 0, budget: 0, passed: 0, failed: 0, skipped: 1 });
  }

  /**
   * Prints the end of what each failed part said, the table and the last line. The exit status is 0
   * only if nothing failed.
   */
  close(started) {
    for (const { title, failed, output } of this.#rows)
      if (failed)
        console.log(
          `\n${title} failed:\n${output.trimEnd().split("\n").slice(-LAST_LINES).join("\n")}`,
        );
    const total = (key) => this.#rows.reduce((sum, row) => sum + row[key], 0);
    const line = (title, row, seconds) =>
      `${title.padEnd(24)}${String(row.passed).padStart(8)}${String(row.failed).padStart(8)}` +
      `${String(row.skipped).padStart(9)}${`${seconds.toFixed(0)} s`.padStart(9)}`;
    console.log(`\n${"".padEnd(24)}  passed  failed  skipped     time`);
    for (const row of this.#rows) console.log(line(row.title, row, row.seconds));
    const sum = { passed: total("passed"), failed: total("failed"), skipped: total("skipped") };
    console.log(`${line("All", sum, (Date.now() - started) / 1000)}\n`);
    for (const { title, seconds, budget, flaky = [] } of this.#rows) {
      for (const line of flaky) console.log(`${title}: passed at a second try: ${line}`);
      if (seconds > budget)
        console.log(
          `${title} took ${seconds.toFixed(0)} s; its budget is ${budget} s on two cores`,
        );
    }
    console.log(
      `${sum.passed} passed, ${sum.failed} failed${sum.skipped ? `, ${sum.skipped} skipped` : ""}`,
    );
    process.exitCode = sum.failed ? 1 : 0;
  }
}

/** Runs a program, and both prints and returns its output. */
function runStep(program, args, env, silence) {
  return new Promise((resolve) => {
    // In a process group of its own, which can be killed whole.
    const detached = process.platform !== "win32";
    const stdio = ["ignore", "pipe", "pipe"];
    const child = spawn(program, args, { cwd: root, env, stdio, detached });
    const interrupt = () => {
      // A script in the group ends the group that it has started.
      killGroup(child.pid, "SIGTERM");
      process.exit(130);
    };
    for (const signal of SIGNALS) process.once(signal, interrupt);
    let output = "";
    const hang = () => {
      take(process.stdout)(`\nhung: nothing was printed for ${silence / 1000} s\n`);
      killGroup(child.pid, "SIGKILL");
    };
    const timer = setTimeout(hang, silence);
    const take = (to) => (chunk) => {
      timer.refresh();
      to.write(chunk);
      output += chunk;
    };
    child.stdout.setEncoding("utf8").on("data", take(process.stdout));
    child.stderr.setEncoding("utf8").on("data", take(process.stderr));
    const end = (result) => {
      clearTimeout(timer);
      for (const signal of SIGNALS) process.off(signal, interrupt);
      resolve(result);
    };
    child.on("error", (error) => end({ status: 1, output: `${program}: ${error.message}` }));
    child.on("close", (status) =>
      end({ status: status ?? 1, output: output.replace(/\u001b\[[0-9;]*m/g, "") }),
    );
  });
}

function killGroup(leader, signal) {
  try {
    // Windows has no groups.
    process.kill(process.platform === "win32" ? leader : -leader, signal);
  } catch {
    // It has ended.
  }
}
