// Checks that a build writes no file that cargo watches, which would make every second `npm start`
// take minutes. Run by `npm test` after a build.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { manifest } from "./root.mjs";

test("where nothing has changed nothing is compiled", () => {
  const build = ["build", "--workspace", "--bins", "--tests", "--message-format=json"];
  const { status, stdout, stderr } = spawnSync("cargo", [...build, "--manifest-path", manifest], {
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  assert.equal(status, 0, stderr);
  const made = stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  const artifacts = made.filter((message) => message.reason === "compiler-artifact");
  assert.ok(artifacts.length > 0);
  const stale = artifacts.filter(({ fresh }) => !fresh).map(({ target }) => target.name);
  assert.deepEqual(stale, []);
});
