// npm run bench: measures the app as it ships and records the figures with the machine they were made on.
// `-- --peer` measures llama.cpp beside it. Other arguments go on to `goldcrest bench`.
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import { compare } from "./peer.mjs";
import { fail, manifest, must, root, targetFolder } from "./root.mjs";
import { prepareBuild } from "./setup.mjs";
import { buildUi } from "./ui.mjs";

const MODELS = {
  starter: ["--model", join(root, "models", "starter", "starter-q4_k_m.gguf")],
  "smollm3-3b-q4_k_m": ["--synthetic", "smollm3-3b-q4_k_m"],
};
/** Damaged files that the reader has to survive. */
const FUZZ_CASES = 100_000;
const RECORDS = join(root, "src-tauri", "benches", "record");

prepareBuild();
buildUi();
must("cargo", ["build", "--release", "--manifest-path", manifest]);
const binary = join(targetFolder(), "release", "goldcrest");
const withPeer = process.argv.includes("--peer");
const options = process.argv.slice(2).filter((option) => option !== "--peer");

const figures = {};
for (const [name, args] of Object.entries(MODELS)) {
  console.log(`goldcrest: measuring ${name}`);
  figures[name] = measure([...args, ...options]);
}
const processor = cpus()[0].model.trim();
const machine = {
  processor,
  cores: cpus().length,
  memory_bytes: totalmem(),
  system: `${process.platform} ${release()}`,
};
print(figures);
const comparison = withPeer ? compare(binary, "smollm3-3b-q4_k_m", options) : undefined;
fuzz();

mkdirSync(RECORDS, { recursive: true });
const file = join(RECORDS, `${slug(processor)}-${machine.cores}.json`);
const record = {
  date: new Date().toISOString().slice(0, 10),
  revision: revision(),
  machine,
  figures,
  comparison,
  damaged_files_survived: FUZZ_CASES,
};
writeFileSync(file, `${JSON.stringify(record, null, 2)}\n`);
console.log(`recorded in ${file}`);

/** The reader's own test on many more damaged files, built with the checks for overflow. */
function fuzz() {
  console.log(`goldcrest: reading ${FUZZ_CASES} damaged files`);
  const test = ["--package", "engine", "--test", "gguf", "random_damage"];
  const env = { ...process.env, GOLDCREST_FUZZ: String(FUZZ_CASES) };
  must("cargo", ["test", "--quiet", "--manifest-path", manifest, ...test], { env });
}

function measure(args) {
  const done = spawnSync(binary, ["bench", "--json", ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (done.status !== 0)
    fail(`goldcrest bench: ${done.error?.message ?? `exit code ${done.status}`}`);
  return JSON.parse(done.stdout);
}

function print(figures) {
  const columns = [
    ["model", (_, name) => name],
    ["device", (f) => `${f.cpu_level ?? f.device}, ${f.threads} threads`],
    ["prefill tok/s", (f) => f.prefill_tok_s.toFixed(1)],
    ["decode tok/s", (f) => f.decode_tok_s.toFixed(1)],
    ["decode GB/s", (f) => ((f.decode_tok_s * f.bytes_per_token) / 1e9).toFixed(1)],
    ["read GB/s", (f) => f.read_bandwidth_gb_s.toFixed(1)],
    ["peak MiB", (f) => (f.peak_rss_bytes / 2 ** 20).toFixed(0)],
    ["load s", (f) => f.load_s.toFixed(2)],
  ];
  const rows = [
    columns.map(([title]) => title),
    ...Object.entries(figures).map(([name, f]) => columns.map(([, of]) => of(f, name))),
  ];
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  for (const row of rows)
    console.log(
      row.map((cell, i) => (i < 2 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join("  "),
    );
}

/** The commit that was measured, marked where the tree held more than it. */
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
