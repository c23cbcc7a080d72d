import assert from "node:assert/strict";
import { test } from "node:test";
import {
  asText,
  chosen,
  namesIn,
  crates,
  gathered,
  npmPackages,
  packageOf,
  packagesInStyles,
} from "./licences.mjs";

const named = (...names) => names.map((name) => ({ name }));
const names = (files) => files.map(({ name }) => name);

test("of several licences to choose from MIT is taken, with every notice", () => {
  const files = named("LICENSE-APACHE", "LICENSE-MIT", "NOTICE");
  for (const either of ["MIT OR Apache-2.0", "Apache-2.0/MIT", "Zlib OR Apache-2.0 OR MIT"])
    assert.deepEqual(names(chosen(either, files)), ["LICENSE-MIT", "NOTICE"], either);
  for (const all of ["Apache-2.0 AND MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "MIT"])
    assert.deepEqual(chosen(all, files), files, all);
  const one = named("LICENSE");
  assert.deepEqual(chosen("MIT OR Apache-2.0", one), one);
});

test("a package is read from a line of the tree, whatever follows it", () => {
  const tree = "goldcrest v0.1.0 (/x/src-tauri)\nserde v1.0.2\nserde v1.0.2 (*)\nzip v9.4.1\n";
  assert.deepEqual([...namesIn(tree)], ["goldcrest v0.1.0", "serde v1.0.2", "zip v9.4.1"]);
});

test("a file and a style sheet tell their packages", () => {
  assert.equal(packageOf("/x/node_modules/@lucide/svelte/dist/a.js"), "@lucide/svelte");
  assert.equal(packageOf("C:\\x\\node_modules\\@lucide\\svelte\\a.js"), "@lucide/svelte");
  assert.equal(packageOf("/x/node_modules/temml/temml.js"), "temml");
  assert.equal(packageOf("/x/ui/src/main.ts"), undefined);
  const styles =
    '@import "@fontsource-variable/inter/opsz.css";\n@import "./tokens.css"; src: url("noto/a.woff2")';
  assert.deepEqual(packagesInStyles(styles), ["@fontsource-variable/inter", "noto"]);
});

test("a text that several packages have is there once", () => {
  const text = "MIT License\r\n\r\nCopyright (c) A\n";
  const found = gathered([
    {
      name: "b",
      version: "2.0.0",
      licence: "MIT",
      texts: [text.replace(/\r/g, ""), "NOTICE of b"],
    },
    { name: "a", version: "1.0.0", licence: "MIT", texts: [text] },
  ]);
  assert.deepEqual(
    found.packages.map((it) => [it.name, it.texts]),
    [
      ["a", [0]],
      ["b", [0, 1]],
    ],
  );
  assert.deepEqual(found.texts, ["MIT License\n\nCopyright (c) A", "NOTICE of b"]);
  const whole = asText(found);
  assert.match(whole, /a 1\.0\.0 \(MIT\)\nb 2\.0\.0 \(MIT\)\n-+\n\nMIT License/);
  assert.equal(whole.split("Copyright (c) A").length, 2);
});

test("every crate in the app has a licence text, and the strict ones theirs", () => {
  const found = crates();
  assert.deepEqual(
    found.filter((it) => it.texts.length === 0),
    [],
  );
  for (const name of ["option-ext", "brotli", "wgpu", "rusqlite", "tokenizers", "ureq", "axum"])
    assert.ok(
      found.some((it) => it.name === name),
      name,
    );
  for (const name of ["specta", "specta-typescript", "tauri-build", "goldcrest", "engine", "fetch"])
    assert.ok(!found.some((it) => it.name === name), name);
  const mozilla = found.filter((it) => it.licence === "MPL-2.0");
  for (const it of mozilla) assert.match(it.texts.join(), /Mozilla Public License/, it.name);
});

test("every font and library of the page has a licence text", () => {
  const font = "@fontsource/noto-sans-math";
  for (const it of npmPackages([font, "@lucide/svelte", "highlight.js", "temml"]))
    assert.ok(it.texts[0].length > 400, it.name);
  assert.match(npmPackages([font])[0].texts[0], /SIL OPEN FONT LICENSE/i);
});
