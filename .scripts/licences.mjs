// Licences of the third-party code in the app: crates in the binary, npm packages and fonts in the
// page.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { manifest, root } from "./root.mjs";

/** Files in a package that are its licence or a notice to be distributed with it. */
const LEGAL = /^(licen[cs]e|copying|copyright|notice|unlicense|ofl)/i;

/** Crates in the app and its companions on this system, with their licence texts. */
export function crates() {
  const of = ["--manifest-path", manifest, "--locked"];
  const programs = ["--package", "goldcrest", "--package", "fetch", "--package", "serve"];
  const tree = ["tree", ...of, ...programs, "--prefix", "none", "--format", "{p}"];
  // Excludes build and test dependencies, and macros, which generate code but are not included.
  const names = namesIn(run("cargo", [...tree, "--edges", "normal,no-proc-macro"]));
  const metadata = JSON.parse(run("cargo", ["metadata", "--format-version=1", ...of]));
  const found = metadata.packages
    .filter((it) => it.source !== null && names.has(`${it.name} v${it.version}`))
    .map((it) => described(it.name, it.version, it.license, it.authors, dirname(it.manifest_path)));
  return shared(found);
}

/**
 * Names and versions in the output of `cargo tree`, as "name vVersion". The tree marks repeated
 * packages.
 */
export function namesIn(tree) {
  return new Set([...tree.matchAll(/^(\S+ v\S+)/gm)].map(([, name]) => name));
}

/** The npm packages of these names, with their licence texts. */
export function npmPackages(names) {
  return names.map((name) => {
    const folder = join(root, "node_modules", ...name.split("/"));
    const { version, license, author } = JSON.parse(
      readFileSync(join(folder, "package.json"), "utf8"),
    );
    return described(name, version, license, [author?.name ?? author ?? ""], folder);
  });
}

/** Package of a file in node_modules, or undefined. */
export function packageOf(file) {
  return /node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file)?.[1].replace("\\", "/");
}

/** Packages whose fonts are named by the style sheets in `text`. */
export function packagesInStyles(text) {
  return [...text.matchAll(/["']((?:@[\w.-]+\/)?[\w.-]+)\/[^"']+["']/g)]
    .map(([, name]) => name)
    .filter((name) => name !== "." && name !== "..");
}

function described(name, version, licence, authors, folder) {
  const texts = chosen(licence ?? "", legalFiles(folder)).map(({ path }) =>
    readFileSync(path, "utf8"),
  );
  return {
    name,
    version,
    licence: licence ?? "",
    texts: texts.length > 0 ? texts : usual(name, licence ?? "", authors),
  };
}

function legalFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return /^licenses?$/i.test(entry.name) ? filesIn(path) : [];
    return LEGAL.test(entry.name) && !/\.(rs|js|ts|html)$/i.test(entry.name)
      ? [{ name: entry.name, path }]
      : [];
  });
}

function filesIn(folder) {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ name }) => ({ name, path: join(folder, name) }));
}

/**
 * Selects the files to include: if MIT is one of several alternatives, its licence and the notices.
 */
export function chosen(licence, files) {
  const isMit = ({ name }) => /mit/i.test(name);
  if (!/\bOR\b|\//i.test(licence) || /\bAND\b/i.test(licence) || !files.some(isMit)) return files;
  return files.filter((file) => isMit(file) || /^(notice|copyright)/i.test(file.name));
}

/** Path of a licence text for packages that do not include one. */
const USUAL = {
  MIT: join(root, "LICENSE-MIT"),
  "Apache-2.0": join(root, "LICENSE-APACHE"),
  "BSD-3-Clause": join(root, ".scripts", "licences", "BSD-3-Clause.txt"),
};

function usual(name, licence, authors) {
  const id = Object.keys(USUAL).find((id) => licence.split(/[^\w.-]+/).includes(id));
  if (!id) return [];
  const holders = authors.filter(Boolean).join(", ") || `the authors of ${name}`;
  const text = readFileSync(USUAL[id], "utf8");
  return [id === "Apache-2.0" ? text : text.replace(/^Copyright .*$/m, `Copyright (c) ${holders}`)];
}

/**
 * Fills in missing MPL-2.0 texts from another package: the text names no holder, so it is the same
 * for all.
 */
function shared(packages) {
  const text = packages.find((it) => it.licence === "MPL-2.0" && it.texts.length > 0)?.texts;
  const lacks = (it) => it.licence === "MPL-2.0" && it.texts.length === 0 && text;
  return packages.map((it) => (lacks(it) ? { ...it, texts: text } : it));
}

/** Packages by name, and each text once. A package refers to its texts by index. */
export function gathered(packages) {
  const texts = [];
  const places = new Map();
  const place = (text) => {
    const key = text.replace(/\s+/g, " ").trim();
    if (!places.has(key)) places.set(key, texts.push(text.replace(/\r/g, "").trim()) - 1);
    return places.get(key);
  };
  const listed = packages.map((it) => ({ ...it, texts: it.texts.map(place) }));
  return { packages: listed.sort((a, b) => a.name.localeCompare(b.name)), texts };
}

/** Licences as one text, for the documentation folder. */
export function asText({ packages, texts }) {
  const rule = "-".repeat(80);
  const parts = texts.map((text, i) => {
    const users = packages.filter((it) => it.texts.includes(i));
    const names = users.map((it) => `${it.name} ${it.version} (${it.licence})`);
    return `${rule}\n${names.join("\n")}\n${rule}\n\n${text}\n`;
  });
  return `Goldcrest contains the work of others, under these licences.\n\n${parts.join("\n")}`;
}

function run(program, args) {
  const done = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, cwd: root });
  if (done.status !== 0) throw new Error(`${program}: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}
