// npm run bench: measures the release build and records the results with the machine: every CPU
// level, a deep context, a follow-up in a long chat, and speculative decoding. `-- --peer` measures
// llama.cpp as well, built for this CPU and for AVX2. Other arguments are passed to `goldcrest
// bench`.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { table } from "./bench-table.mjs";
import { SHAPE, shapedModel } from "./bench-model.mjs";
import { bundledModel } from "./bundled-model.mjs";
import { compare } from "./peer.mjs";
import { fail, must } from "./programs.mjs";
import { manifest, root } from "./root.mjs";
import { buildRelease } from "./rust.mjs";
import { prepareBuild } from "./setup.mjs";
import { buildUi } from "./ui.mjs";

/** Tokens before the measured ones, for a deep context. */
const DEPTH = 8192;
/** Tokens of the chat in which a follow-up is measured. */
const CHAT = 4096;
/** Number of damaged GGUF files that must not crash the reader. */
const FUZZ_CASES = 100_000;
const RECORDS = join(root, "src-tauri", "benches", "record");

prepareBuild();
buildUi();
const binary = buildRelease();
// Read first, because the tree may change during the measurement.
const measured = revision();
const withPeer = process.argv.includes("--peer");
const options = process.argv.slice(2).filter((option) => option !== "--peer");
const deep = options.includes("-d") ? [] : ["-d", String(DEPTH)];

const shaped = await shapedModel(binary);
if (withPeer) {
  record({ peers: { ...now(), comparisons: comparePeers() } });
} else {
  const figures = {
    bundled: byLevel("bundled", bundledModel),
    [SHAPE]: byLevel(SHAPE, shaped),
  };
  console.log(`goldcrest: measuring ${SHAPE} deep in a chat`);
  const model = ["--model", shaped];
  const depth = deep.length > 0 ? measure([...model, ...options, ...deep, "-r", "1"]) : undefined;
  const chat = measure([
    ...[...model, ...options, "-p", "0", "-n", "0", "-r", "1"],
    ...["--chat", String(CHAT), "--lookup"],
  ]);
  print(figures, depth, chat);
  fuzz();
  const { follow_up, lookup, idle_cpu, sampling_ms } = chat;
  record({
    ...now(),
    figures,
    depth,
    chat: { follow_up, lookup, idle_cpu, sampling_ms },
    damaged_files_survived: FUZZ_CASES,
  });
}

/** Compares at this machine's own level and at AVX2, the level of most desktops. */
function comparePeers() {
  const { cpu_level } = measure(["--model", shaped, "-p", "8", "-n", "0", "-r", "1"]);
  const levels = process.arch === "x64" && cpu_level !== "avx2" ? ["native", "avx2"] : ["native"];
  const comparisons = [];
  const beside = (level, rounds, more) =>
    comparisons.push(
      compare({ goldcrest: binary, model: shaped, shape: SHAPE, level, rounds, options: more }),
    );
  for (const level of levels) {
    beside(level, 3, options);
    // Small batches, as in the verification of drafts.
    for (const few of ["2", "8"]) beside(level, 3, ["-p", few, "-n", "0"]);
    beside(level, 1, [...deep, "-p", "64", "-n", "32"]);
    beside(level, 1, [...deep, "-p", "64", "-n", "32", "--kv", "q8_0"]);
  }
  return comparisons;
}

/**
 * Measures every level of this machine, best first. One run is enough for the others, and a short
 * one for the slowest.
 */
function byLevel(name, file) {
  console.log(`goldcrest: measuring ${name}`);
  const best = measure(["--model", file, ...options]);
  const lower = best.cpu_levels.slice(0, -1).reverse();
  const named = process.env.GOLDCREST_CPU;
  if (named || best.device !== "cpu") return { [best.cpu_level]: best };
  const rows = lower.map((level) => {
    console.log(`goldcrest: measuring ${name} at ${level}`);
    const short = Object.entries(level === "scalar" ? { "-p": 64, "-n": 8 } : { "-n": 32 })
      .filter(([option]) => !options.includes(option))
      .flatMap(([option, count]) => [option, String(count)]);
    return measure(["--model", file, ...options, ...short, "-r", "1"], {
      GOLDCREST_CPU: level,
    });
  });
  return Object.fromEntries([best, ...rows].map((row) => [row.cpu_level, row]));
}

function measure(args, env = {}) {
  const done = spawnSync(binary, ["bench", "--json", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  if (done.status !== 0)
    fail(`goldcrest bench: ${done.error?.message ?? `exit code ${done.status}`}`);
  return JSON.parse(done.stdout);
}

function print(figures, depth, { follow_up, lookup, idle_cpu, sampling_ms }) {
  const percent = (share) => (share === null ? "–" : `${(share * 100).toFixed(0)} %`);
  const rate = (perSecond) => (perSecond === null ? "–" : perSecond.toFixed(1));
  const rows = Object.entries(figures).flatMap(([name, levels]) =>
    Object.values(levels).map((f) => ({ name, ...f })),
  );
  if (depth) rows.push({ name: `${SHAPE}, ${DEPTH} deep`, ...depth });
  console.log(
    table(rows, [
      ["model", (f) => f.name],
      ["level", (f) => f.cpu_level],
      ["prefill tok/s", (f) => rate(f.prefill_tok_s)],
      ["of integers", (f) => percent(f.integer_used)],
      ["decode tok/s", (f) => rate(f.decode_tok_s)],
      ["of bandwidth", (f) => percent(f.bandwidth_used)],
      ["read GB/s", (f) => f.read_bandwidth_gb_s.toFixed(1)],
      ["load s", (f) => f.load_s.toFixed(2)],
      ["peak MiB", (f) => (f.peak_rss_bytes / 2 ** 20).toFixed(0)],
    ]),
  );
  console.log(
    table(lookup, [
      ["text", (f) => f.text],
      ["with drafts", (f) => rate(f.lookup_tok_s)],
      ["without", (f) => rate(f.plain_tok_s)],
      ["ratio", (f) => f.ratio.toFixed(2)],
      ["accepted", (f) => `${f.accepted} of ${f.drafted}`],
    ]),
  );
  console.log(
    `the first token of a follow-up in a chat of ${follow_up.cached} tokens comes after ${follow_up.first_token_s.toFixed(2)} s`,
  );
  console.log(
    `sampling a token takes ${sampling_ms.toFixed(2)} ms; idle, the app uses ${percent(idle_cpu)} of a core`,
  );
}

/** Runs the reader's own test on many more damaged files, with overflow checks. */
function fuzz() {
  console.log(`goldcrest: reading ${FUZZ_CASES} damaged files`);
  const test = ["--package", "engine", "--test", "gguf", "random_damage"];
  const env = { ...process.env, GOLDCREST_FUZZ: String(FUZZ_CASES) };
  must("cargo", ["test", "--quiet", "--manifest-path", manifest, ...test], {
    env,
  });
}

function now() {
  return { date: new Date().toISOString().slice(0, 10), revision: measured };
}

/**
 * Records the results. Those of the app and of its peers come from separate runs, so each keeps the
 * other's.
 */
function record(found) {
  const processor = cpus()[0].model.trim();
  const machine = {
    processor,
    cores: cpus().length,
    memory_bytes: totalmem(),
    system: `${process.platform} ${release()}`,
  };
  mkdirSync(RECORDS, { recursive: true });
  const file = join(RECORDS, `${slug(processor)}-${machine.cores}.json`);
  const { peers, ...own } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
  const kept = found.peers ? own : { ...(peers && { peers }) };
  writeFileSync(file, `${JSON.stringify({ ...kept, machine, ...found }, null, 2)}\n`);
  console.log(`recorded in ${file}`);
}

/** Measured commit, marked if the tree had changes. */
function revision() {
  const git = (...args) => spawnSync("git", args, { cwd: root, encoding: "utf8" }).stdout?.trim();
  return `${git("rev-parse", "--short", "HEAD") || "unknown"}${git("status", "--porcelain") ? "+" : ""}`;
}

function slug(text) {
  return text
    .toLowerCase()
    .replace(/\((r|tm)\)/g, "")
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "");
}
