import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, parse } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import {
  commandLineFiles,
  debDepends,
  neededBy,
  rpmDepends,
  withAddresses,
} from "./linux-packages.mjs";
import { which } from "./programs.mjs";
import { root } from "./root.mjs";
import { builtCompanions, packedBeside } from "./rust.mjs";

const bundle = join(root, "src-tauri", "bundle");
const lacks = (program) => (which(program) ? false : `there is no ${program}`);

const HEADERS = `
Dynamic Section:
  NEEDED               libgtk-3.so.0
  NEEDED               libgcc_s.so.1
  NEEDED               libc.so.6
  INIT                 0x0000000000001000
`;
const SYMBOLS = `
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.2.5) free
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.35) hypotf
0000000000000000      DF *UND*	0000000000000000 (GLIBC_2.9)  pipe2
0000000000000000      DF *UND*	0000000000000000 (GCC_3.0)   _Unwind_Resume
`;

test("packages depend on the newest GLIBC that a symbol asks for", () => {
  const needs = neededBy(`${HEADERS}\n${HEADERS}`, SYMBOLS);
  assert.equal(needs.glibc, "2.35");
  assert.deepEqual(debDepends(needs), ["libc6 (>= 2.35)", "libgcc-s1", "ca-certificates"]);
  assert.deepEqual(rpmDepends(needs), [
    "libc.so.6(GLIBC_2.35)(64bit)",
    "libgcc_s.so.1()(64bit)",
    "ca-certificates",
  ]);
});

test("a library whose package is not known stops the build", () => {
  const needs = neededBy(HEADERS.replace("libgcc_s.so.1", "libfuse.so.2"), SYMBOLS);
  for (const depends of [debDepends, rpmDepends])
    assert.throws(() => depends(needs), /libfuse\.so\.2/);
});

test("the desktop entry opens files of the type that the MIME file declares", () => {
  const entry = readFileSync(join(bundle, "goldcrest.desktop"), "utf8");
  const type = /^MimeType=(\S+);$/m.exec(entry)[1];
  assert.match(entry, /^Exec=\S+ %F$/m);
  for (const key of ["GenericName", "Keywords", "StartupWMClass"])
    assert.match(entry, new RegExp(`^${key}=.+$`, "m"));
  const declared = readFileSync(join(bundle, "org.goldcrest.Goldcrest.mime.xml"), "utf8");
  assert.ok(declared.includes(`type="${type}"`));
  const config = readFileSync(join(root, "src-tauri", "tauri.conf.json"), "utf8");
  assert.equal(JSON.parse(config).bundle.fileAssociations[0].mimeType, type);
});

test("the type is known by its first bytes", { skip: lacks("update-mime-database") }, (t) => {
  const data = mkdtempSync(join(tmpdir(), "goldcrest-mime-"));
  t.after(() => rmSync(data, { recursive: true }));
  const folder = join(data, "mime");
  mkdirSync(join(folder, "packages"), { recursive: true });
  const declared = readFileSync(join(bundle, "org.goldcrest.Goldcrest.mime.xml"));
  writeFileSync(join(folder, "packages", "goldcrest.xml"), declared);
  const env = { ...process.env, XDG_DATA_HOME: data };
  const done = spawnSync("update-mime-database", [folder], { encoding: "utf8", env });
  assert.equal(done.status, 0, done.stderr);
  assert.equal(done.stderr, "");
  assert.ok(existsSync(join(folder, "application", "x-gguf.xml")));
  assert.ok(
    readFileSync(join(folder, "magic"), "latin1").includes("application/x-gguf]\n>0=\0\u0004GGUF"),
  );
});

test("the description for software centres is in order", { skip: lacks("appstreamcli") }, (t) => {
  const file = join(bundle, "org.goldcrest.Goldcrest.metainfo.xml");
  const valid = (file) => {
    const options = ["validate", "--no-net", "--pedantic", file];
    const done = spawnSync("appstreamcli", options, { encoding: "utf8" });
    assert.equal(done.status, 0, done.stdout);
  };
  valid(file);
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-metainfo-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const addressed = join(folder, "org.goldcrest.Goldcrest.metainfo.xml");
  const text = withAddresses(readFileSync(file, "utf8"), "https://goldcrest.example/");
  writeFileSync(addressed, text);
  valid(addressed);
  const pictures = [...text.matchAll(/goldcrest\.example\/screenshots\/(.+?)</g)];
  assert.ok(pictures.length > 1);
  for (const [, name] of pictures)
    assert.ok(existsSync(join(root, "ui", "screenshots", name)), name);
});

test("man pages and completions of the app are packed", { skip: lacks("sh") }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), "goldcrest-command-line-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const app = join(folder, "app");
  const script = `#!/bin/sh
[ "$1" = package-files ] || exit 2
mkdir -p "$2/man" "$2/completions"
for name in goldcrest goldcrest-ask; do echo "page of $name" > "$2/man/$name.1"; done
for name in goldcrest.bash goldcrest.fish _goldcrest; do : > "$2/completions/$name"; done
`;
  writeFileSync(app, script, { mode: 0o755 });
  const made = join(folder, "made");
  mkdirSync(join(made, "man"), { recursive: true });
  writeFileSync(join(made, "man", "goldcrest-gone.1"), "of an earlier build");
  const { deb, rpm } = commandLineFiles(app, made);
  const common = [
    "/usr/share/bash-completion/completions/goldcrest",
    "/usr/share/fish/vendor_completions.d/goldcrest.fish",
    "/usr/share/man/man1/goldcrest-ask.1.gz",
    "/usr/share/man/man1/goldcrest.1.gz",
  ];
  const zsh = ["vendor-completions", "site-functions"].map(
    (it) => `/usr/share/zsh/${it}/_goldcrest`,
  );
  assert.deepEqual(Object.keys(deb).sort(), [...common, zsh[0]]);
  assert.deepEqual(Object.keys(rpm).sort(), [...common, zsh[1]]);
  for (const file of [...Object.values(deb), ...Object.values(rpm)]) assert.ok(existsSync(file));
  const page = gunzipSync(readFileSync(deb["/usr/share/man/man1/goldcrest-ask.1.gz"]));
  assert.equal(page.toString(), "page of goldcrest-ask\n");
});

test("all programs are built and packed, and the app finds the others beside itself", () => {
  const text = (...path) => readFileSync(join(root, ...path), "utf8");
  const crate = (...path) => text("src-tauri", "crates", ...path);
  const manifest = text("src-tauri", "Cargo.toml");
  assert.match(manifest, /^default-members = \["\.", "crates\/fetch", "crates\/serve"\]$/m);
  const starts = {
    fetch: crate("download", "src", "child.rs"),
    serve: crate("api", "src", "server.rs"),
  };
  const built = builtCompanions("release").map((path) => parse(path).name);
  for (const [at, [program, start]] of Object.entries(starts).entries()) {
    const [, name] = /\[\[bin\]\]\nname = "(.+)"/.exec(crate(program, "Cargo.toml"));
    assert(start.includes(`companion::path("${name}"`), "the name that the app looks for");
    assert.equal(built[at], name);
  }
  // Matches tauri's bundler, including the extension on Windows.
  for (const ending of ["", ".exe"]) {
    const folder = mkdtempSync(join(tmpdir(), "goldcrest-packed-"));
    const program = join(folder, `program${ending}`);
    writeFileSync(program, "program");
    const target = "x86_64-unknown-linux-gnu";
    const listed = packedBeside(program, join(folder, "package"), target);
    assert.equal(readFileSync(`${listed}-${target}${ending}`, "utf8"), "program");
  }
});

test("what is packed names the version of the app", () => {
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const named = (name) => readFileSync(join(bundle, name), "utf8");
  assert.ok(named("org.goldcrest.Goldcrest.metainfo.xml").includes(`version="${version}"`));
  assert.match(named("changelog"), new RegExp(`^Goldcrest ${version.replaceAll(".", "\\.")} `));
});
