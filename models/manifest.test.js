import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";

const { models } = JSON.parse(
  readFileSync(new URL("manifest.json", import.meta.url), "utf8"),
);

test("every known model says what it is", () => {
  for (const {
    name,
    file,
    bytes,
    sha256,
    quantisation,
    licence,
    source,
  } of models) {
    for (const text of [name, quantisation, licence, source])
      assert.match(text, /\S/, file);
    assert.match(file, /\.gguf$/);
    assert(Number.isSafeInteger(bytes) && bytes > 0, file);
    assert.match(sha256, /^[0-9a-f]{64}$/, file);
  }
});

test("size and SHA-256 of what is downloaded were confirmed by two public sources at least", () => {
  for (const { file, repository, confirmed } of models.filter(
    ({ repository }) => repository,
  )) {
    assert(new Set(confirmed).size >= 2, file);
    // The repository itself is where it comes from, and confirms nothing.
    for (const source of confirmed) {
      assert.match(source, /SHA-256/, file);
      assert(!source.startsWith(repository), file);
    }
  }
});

test("one model comes with the app, and its file is the one that the manifest describes", (t) => {
  const bundled = models.filter(({ repository }) => !repository);
  assert.deepEqual(
    bundled.map(({ name }) => name),
    ["SmolLM2-135M-Instruct"],
  );
  const [{ file, bytes, sha256 }] = bundled;
  const path = new URL(file, import.meta.url);
  if (!existsSync(path)) return t.skip("set-up could not fetch it");
  const content = readFileSync(path);
  assert.equal(content.length, bytes);
  assert.equal(createHash("sha256").update(content).digest("hex"), sha256);
});
