// Peers for `npm run bench -- --peer`: llama.cpp from the source package of llama-cpp-python, built
// for this CPU and for AVX2; and optionally another llama-bench named by GOLDCREST_PEER, such as
// that of ik_llama.cpp ("PATH -rtr 1").
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cache } from "./bench-model.mjs";
import { table } from "./bench-table.mjs";
import { fail, must, which } from "./programs.mjs";

const VERSION = "0.3.36";

/**
 * Build flags of llama.cpp for our CPU levels. The best level of this machine enables everything.
 */
const AVX2 = ["SSE42", "AVX", "AVX2", "BMI2", "FMA", "F16C"];
const FEATURES = {
  native: { GGML_NATIVE: "ON" },
  avx2: {
    GGML_NATIVE: "OFF",
    ...Object.fromEntries(AVX2.map((name) => [`GGML_${name}`, "ON"])),
  },
};

/**
 * Measures our app and its peers on the same file, alternating, so that load on the machine affects
 * all. `level`: "native" or "avx2", for both; `options`: supported by both.
 */
export function compare({ goldcrest, model, shape, level, rounds, options }) {
  const isDeep = options.includes("-d");
  const peers = peersAt(level, model).filter((peer) => !isDeep || measuresDepth(peer));
  const env = level === "native" ? {} : { GOLDCREST_CPU: level };
  const figures = [
    { name: "goldcrest", rounds: [] },
    ...peers.map(({ name }) => ({ name, rounds: [] })),
  ];
  for (let round = 1; round <= rounds; round++) {
    console.log(`goldcrest: round ${round} of ${rounds}, ${level}, ${options.join(" ")}`);
    const own = json(goldcrest, ["bench", "--json", "--model", model, "-r", "1", ...options], env);
    figures[0].rounds.push({
      prefill_tok_s: own.prefill_tok_s,
      decode_tok_s: own.decode_tok_s,
      read_bandwidth_gb_s: own.read_bandwidth_gb_s,
    });
    const threads = options.includes("-t") ? [] : ["-t", String(own.threads)];
    const common = ["-m", model, "-o", "json", "-r", "1", ...threads, ...llamaOptions(options)];
    for (const [at, { program, args }] of peers.entries()) {
      const tests = json(program, [...common, ...args]);
      figures[at + 1].rounds.push({
        prefill_tok_s: tests.find((test) => test.n_gen === 0)?.avg_ts ?? null,
        decode_tok_s: tests.find((test) => test.n_prompt === 0)?.avg_ts ?? null,
      });
    }
  }
  const result = {
    model: shape,
    level,
    options,
    figures: figures.map((of) => ({ ...of, medians: medians(of.rounds) })),
  };
  print(result);
  return result;
}

/**
 * Converts our options to those of llama-bench, which has separate ones for keys and values, and
 * needs flash attention for them.
 */
function llamaOptions(options) {
  const at = options.indexOf("--kv");
  if (at < 0) return options;
  const type = options[at + 1];
  return [...options.toSpliced(at, 2), "-ctk", type, "-ctv", type, "-fa", "1"];
}

function peersAt(level, model) {
  const program = buildLlamaBench(level);
  const crashes = crashesRepacked(program, model);
  const name =
    `llama.cpp of llama-cpp-python ${VERSION}` +
    (crashes ? ", weights not repacked: it crashes when they are" : "");
  const peers = [{ name, program, args: crashes ? ["--repack", "0"] : [] }];
  const [other, ...args] = process.env.GOLDCREST_PEER?.split(" ") ?? [];
  // Built for this CPU only.
  if (other && level === "native")
    peers.push({
      name: args.length > 0 ? `other, ${args.join(" ")}` : "other",
      program: other,
      args,
    });
  return peers;
}

function buildLlamaBench(level) {
  const source = join(cache, `llama_cpp_python-${VERSION}`);
  const build = join(source, level === "native" ? "build-bench" : `build-bench-${level}`);
  const binary = join(build, "bin", "llama-bench");
  if (existsSync(binary)) return binary;
  if (!which("python3")) fail("Python is needed to fetch llama.cpp: apt-get install python3-venv");
  console.log(`goldcrest: building llama.cpp, ${level} (once; this takes a while)`);
  mkdirSync(cache, { recursive: true });
  const venv = join(cache, "venv");
  const tool = (name) => join(venv, "bin", name);
  must("python3", ["-m", "venv", venv]);
  must(tool("pip"), ["install", "--quiet", "cmake", "ninja"]);
  const name = "llama-cpp-python";
  const download = ["download", "--quiet", "--no-deps", "--no-binary", name, "--dest", cache];
  must(tool("pip"), [...download, `${name}==${VERSION}`]);
  must("tar", ["--extract", "--file", `${source}.tar.gz`, "--directory", cache]);
  const settings = {
    CMAKE_MAKE_PROGRAM: tool("ninja"),
    CMAKE_BUILD_TYPE: "Release",
    BUILD_SHARED_LIBS: "OFF",
    ...FEATURES[level],
    LLAMA_BUILD_APP: "OFF",
    LLAMA_BUILD_EXAMPLES: "OFF",
    LLAMA_BUILD_SERVER: "OFF",
    LLAMA_BUILD_TESTS: "OFF",
    LLAMA_OPENSSL: "OFF",
  };
  const defined = Object.entries(settings).map(([key, value]) => `-D${key}=${value}`);
  const llama = join(source, "vendor", "llama.cpp");
  must(tool("cmake"), ["-G", "Ninja", "-S", llama, "-B", build, ...defined]);
  const jobs = String(availableParallelism());
  must(tool("cmake"), ["--build", build, "--target", "llama-bench", "--parallel", jobs]);
  return binary;
}

/** Checks if repacking weights crashes it, as seen on CPUs with AMX. */
function crashesRepacked(llamaBench, model) {
  const args = ["-m", model, "-p", "32", "-n", "0", "-r", "1"];
  return spawnSync(llamaBench, args, { stdio: "ignore" }).signal !== null;
}

/** Checks for the depth option, which older versions such as ik_llama.cpp's lack. */
function measuresDepth({ program }) {
  const { stdout, stderr } = spawnSync(program, ["--help"], { encoding: "utf8" });
  return `${stdout}${stderr}`.includes("--n-depth");
}

function json(program, args, env = {}) {
  const done = spawnSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  if (done.status !== 0) fail(`${program}: ${done.error?.message ?? `exit code ${done.status}`}`);
  // ik_llama.cpp prints warnings within its JSON.
  return JSON.parse(done.stdout.replace(/^WARNING: .*$/gm, ""));
}

function medians(rounds) {
  const median = (key) =>
    rounds.map((round) => round[key]).sort((a, b) => a - b)[rounds.length >> 1];
  return {
    prefill_tok_s: median("prefill_tok_s"),
    decode_tok_s: median("decode_tok_s"),
  };
}

function print({ level, options, figures }) {
  const rate = (perSecond) => perSecond?.toFixed(1) ?? "–";
  const ours = figures[0].medians;
  const ratio = (theirs, key) =>
    ours[key] && theirs[key] ? (ours[key] / theirs[key]).toFixed(2) : "–";
  console.log(
    table(figures, [
      [`medians, ${level}`, ({ name }) => name],
      [options.join(" "), () => ""],
      ["prefill tok/s", ({ medians }) => rate(medians.prefill_tok_s)],
      ["ours to it", ({ medians }) => ratio(medians, "prefill_tok_s")],
      ["decode tok/s", ({ medians }) => rate(medians.decode_tok_s)],
      ["ours to it", ({ medians }) => ratio(medians, "decode_tok_s")],
    ]),
  );
}
