import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { test } from "node:test";
import { npm, which } from "./programs.mjs";

/** Creates a folder with programs of these names. */
function folderWith(...names) {
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-programs-"));
  for (const name of names) {
    writeFileSync(join(folder, name), "");
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

test("Windows finds a program under each ending that PATHEXT lists", () => {
  const folder = folderWith("cargo.exe", "npm.cmd", "notes.txt");
  const find = (name, env = {}) => which(name, { env: { PATH: folder, ...env }, windows: true });
  assert.equal(find("cargo"), join(folder, "cargo.exe"));
  assert.equal(find("npm"), join(folder, "npm.cmd"));
  assert.equal(find("cargo.exe"), join(folder, "cargo.exe"));
  assert.equal(find("npm", { PATHEXT: ".EXE" }), undefined);
  assert.equal(find("notes"), undefined);
});

test(
  "elsewhere a program is a file that can be run",
  { skip: process.platform === "win32" },
  () => {
    const [first, second] = [folderWith("cargo.exe"), folderWith("cargo")];
    mkdirSync(join(first, "cargo"));
    writeFileSync(join(first, "data"), "");
    chmodSync(join(first, "data"), 0o644);
    const env = { PATH: [first, second].join(delimiter) };
    assert.equal(which("cargo", { env, windows: false }), join(second, "cargo"));
    assert.equal(which("data", { env, windows: false }), undefined);
    assert.equal(which("cargo", { env: {}, windows: false }), undefined);
  },
);

test("npm is run as JavaScript: that which runs this, or the one beside Node", () => {
  const running = join("somewhere", "npm-cli.js");
  const found = (env, ...files) =>
    npm({ env, node: join("opt", "bin", "node"), exists: (file) => files.includes(file) });
  const node = join("opt", "bin", "node");
  assert.deepEqual(found({ npm_execpath: running }, running), [node, running]);
  const unix = join("opt", "lib", "node_modules", "npm", "bin", "npm-cli.js");
  const windows = join("opt", "bin", "node_modules", "npm", "bin", "npm-cli.js");
  assert.deepEqual(found({}, unix), [node, unix]);
  assert.deepEqual(found({}, windows), [node, windows]);
  // The script of another package manager is not npm.
  const pnpm = join("somewhere", "pnpm.cjs");
  assert.deepEqual(found({ npm_execpath: pnpm }, pnpm, unix), [node, unix]);
  assert.deepEqual(found({}), ["npm"]);
});
