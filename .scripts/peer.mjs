// The peer that `npm run bench -- --peer` measures beside ours: llama.cpp, as the source package of
// llama-cpp-python brings it, built for this very processor.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { cache } from "./bench-model.mjs";
import { fail, must, which } from "./root.mjs";

const VERSION = "0.3.36";

/** Measures both on the same file, in turns, so that a busy machine slows both. `options` are known to both. */
export function compare(goldcrest, model, shape, rounds, options) {
  const llamaBench = buildLlamaBench();
  const plain = crashesRepacked(llamaBench, model) ? ["--repack", "0"] : [];
  const ours = [];
  const theirs = [];
  for (let round = 1; round <= rounds; round++) {
    console.log(`goldcrest: round ${round} of ${rounds} beside llama.cpp ${options.join(" ")}`);
    const own = json(goldcrest, ["bench", "--json", "--model", model, "-r", "1", ...options]);
    ours.push({
      prefill_tok_s: own.prefill_tok_s,
      decode_tok_s: own.decode_tok_s,
    });
    const threads = options.includes("-t") ? [] : ["-t", String(own.threads)];
    const common = [...threads, ...options, ...plain];
    const tests = json(llamaBench, ["-m", model, "-o", "json", "-r", "1", ...common]);
    theirs.push({
      prefill_tok_s: tests.find((test) => test.n_gen === 0)?.avg_ts ?? null,
      decode_tok_s: tests.find((test) => test.n_prompt === 0)?.avg_ts ?? null,
    });
  }
  const result = {
    peer:
      `llama.cpp of llama-cpp-python ${VERSION}, built for this processor` +
      (plain.length > 0 ? ", weights not repacked: it crashes when they are" : ""),
    model: shape,
    options,
    rounds: { ours, theirs },
    medians: { ours: medians(ours), theirs: medians(theirs) },
  };
  print(result);
  return result;
}

function buildLlamaBench() {
  const source = join(cache, `llama_cpp_python-${VERSION}`);
  const build = join(source, "build-bench");
  const binary = join(build, "bin", "llama-bench");
  if (existsSync(binary)) return binary;
  if (!which("python3")) fail("Python is needed to fetch llama.cpp: apt-get install python3-venv");
  console.log("goldcrest: building llama.cpp (once; this takes a while)");
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
    GGML_NATIVE: "ON",
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

/** Whether it dies where weights are laid out for this processor, as seen where that has AMX. */
function crashesRepacked(llamaBench, model) {
  const args = ["-m", model, "-p", "32", "-n", "0", "-r", "1"];
  return spawnSync(llamaBench, args, { stdio: "ignore" }).signal !== null;
}

function json(program, args) {
  const done = spawnSync(program, args, {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (done.status !== 0) fail(`${program}: ${done.error?.message ?? `exit code ${done.status}`}`);
  return JSON.parse(done.stdout);
}

function medians(rounds) {
  const median = (key) =>
    rounds.map((round) => round[key]).sort((a, b) => a - b)[rounds.length >> 1];
  return {
    prefill_tok_s: median("prefill_tok_s"),
    decode_tok_s: median("decode_tok_s"),
  };
}

function print({ medians: { ours, theirs } }) {
  const line = (name, of, digits) =>
    console.log(
      name.padEnd(20) +
        ["prefill_tok_s", "decode_tok_s"]
          .map((key) => (of(key)?.toFixed(digits) ?? "–").padStart(16))
          .join(""),
    );
  console.log(
    `${"medians".padEnd(20)}${"prefill tok/s".padStart(16)}${"decode tok/s".padStart(16)}`,
  );
  line("goldcrest", (key) => ours[key], 1);
  line("llama.cpp", (key) => theirs[key], 1);
  line("ratio", (key) => ours[key] && ours[key] / theirs[key], 2);
}
