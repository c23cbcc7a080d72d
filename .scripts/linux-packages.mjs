// Metadata and files of the .deb and .rpm that are only known once the app is built.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { MODULE } from "./licences-plugin.mjs";
import { asText } from "./licences.mjs";
import { fail } from "./programs.mjs";
import { root } from "./root.mjs";

/** Debian packages of libraries other than those of GTK and WebKit, which tauri adds. */
const LIBRARIES = {
  "libdbus-1.so.3": "libdbus-1-3",
  "libgcc_s.so.1": "libgcc-s1",
  "libstdc++.so.6": "libstdc++6",
};
const BEHIND_GTK_OR_LIBC =
  /^(lib(gtk|gdk|glib|gobject|gio|cairo|gdk_pixbuf|webkit2gtk|javascriptcoregtk|soup)-[\d.]+\.so|libcairo\.so|libc\.so|libm\.so|ld-linux)/;

/**
 * Screenshots for software centres, relative to the project's URL; the first one is the default.
 */
const SCREENSHOTS = [
  ["window.png", "A chat about compound interest"],
  ["window-dark.png", "The same chat in dark colours"],
  ["palette.png", "Searching chats and commands"],
  ["models.png", "Models on this computer"],
];

/**
 * Tauri's configuration for packages of these programs: their dependencies, and files written to
 * `folder`.
 */
export async function packageConfig(programs, folder, homepage) {
  mkdirSync(folder, { recursive: true });
  const { default: licences } = await import(pathToFileURL(join(root, "ui", "dist", MODULE)).href);
  const files = {};
  const add = (target, name, content) => {
    writeFileSync(join(folder, name), content);
    files[target] = join(folder, name);
  };
  add("/usr/share/doc/goldcrest/third-party-licences.gz", "licences.gz", packed(asText(licences)));
  const changes = readFileSync(join(root, "src-tauri", "bundle", "changelog"));
  add("/usr/share/doc/goldcrest/changelog.gz", "changelog.gz", packed(changes));
  const described = readFileSync(join(root, "src-tauri", "bundle", METAINFO), "utf8");
  if (homepage)
    add(`/usr/share/metainfo/${METAINFO}`, METAINFO, withAddresses(described, homepage));
  else console.log("goldcrest: package.json has no homepage, so software centres show no pictures");
  const { deb, rpm } = commandLineFiles(programs[0], join(folder, "command-line"));
  const dumps = (option) => programs.map((program) => objdump(option, program)).join("\n");
  const needs = neededBy(dumps("-p"), dumps("-T"));
  return {
    bundle: {
      linux: {
        deb: { depends: debDepends(needs), files: { ...files, ...deb } },
        rpm: { depends: rpmDepends(needs), files: { ...files, ...rpm } },
      },
    },
  };
}

/**
 * Has the app write its man pages and shell completions to `folder`, and returns them by their
 * places in each package.
 */
export function commandLineFiles(app, folder) {
  rmSync(folder, { recursive: true, force: true });
  const done = spawnSync(app, ["package-files", folder], { encoding: "utf8" });
  if (done.status !== 0) fail(`${app} package-files: ${done.error?.message ?? done.stderr}`);
  const pages = join(folder, "man");
  const common = {};
  for (const name of readdirSync(pages)) {
    const page = join(folder, `${name}.gz`);
    writeFileSync(page, packed(readFileSync(join(pages, name))));
    common[`/usr/share/man/man1/${name}.gz`] = page;
  }
  const completions = (name) => join(folder, "completions", name);
  Object.assign(common, {
    "/usr/share/bash-completion/completions/goldcrest": completions("goldcrest.bash"),
    "/usr/share/fish/vendor_completions.d/goldcrest.fish": completions("goldcrest.fish"),
  });
  const zsh = completions("_goldcrest");
  return {
    deb: { ...common, "/usr/share/zsh/vendor-completions/_goldcrest": zsh },
    rpm: { ...common, "/usr/share/zsh/site-functions/_goldcrest": zsh },
  };
}

const METAINFO = "org.goldcrest.Goldcrest.metainfo.xml";

/** Description for software centres, with links to the project's URL, which uses https. */
export function withAddresses(metainfo, homepage) {
  const base = homepage.replace(/\/$/, "");
  const pictures = SCREENSHOTS.map(
    ([name, caption], at) => `    <screenshot${at === 0 ? ' type="default"' : ""}>
      <caption>${caption}</caption>
      <image type="source">${base}/screenshots/${name}</image>
    </screenshot>`,
  );
  const added = [
    `  <url type="homepage">${base}</url>`,
    "  <screenshots>",
    ...pictures,
    "  </screenshots>",
  ];
  return metainfo.replace("  <branding>", `${added.join("\n")}\n  <branding>`);
}

// Level 9 without a timestamp, as Debian requires, so that packages are reproducible.
const packed = (content) => gzipSync(content, { level: 9 });

function objdump(option, program) {
  const done = spawnSync("objdump", [option, program], { encoding: "utf8", maxBuffer: 1 << 28 });
  if (done.status !== 0) fail(`objdump ${option}: ${done.error?.message ?? done.stderr}`);
  return done.stdout;
}

/** Libraries that programs are linked with, and the newest GLIBC version among their symbols. */
export function neededBy(headers, symbols) {
  const named = [...headers.matchAll(/^\s*NEEDED\s+(\S+)$/gm)].map(([, name]) => name);
  const libraries = [...new Set(named)];
  const versions = [...symbols.matchAll(/GLIBC_(\d+)\.(\d+)/g)].map(([, major, minor]) => [
    +major,
    +minor,
  ]);
  if (versions.length === 0) fail("the program names no version of GLIBC");
  const newest = versions.reduce((a, b) => ((b[0] - a[0] || b[1] - a[1]) > 0 ? b : a));
  return { libraries, glibc: newest.join(".") };
}

export function debDepends({ libraries, glibc }) {
  const named = others(libraries).map((name) => LIBRARIES[name]);
  // Downloads are verified against the certificates of the system.
  return [`libc6 (>= ${glibc})`, ...named, "ca-certificates"];
}

export function rpmDepends({ libraries, glibc }) {
  const named = others(libraries).map((name) => `${name}()(64bit)`);
  return [`libc.so.6(GLIBC_${glibc})(64bit)`, ...named, "ca-certificates"];
}

/** Libraries that a package must declare. */
function others(libraries) {
  const left = libraries.filter((name) => !BEHIND_GTK_OR_LIBC.test(name));
  const unknown = left.filter((name) => !LIBRARIES[name]);
  if (unknown.length > 0)
    throw new Error(`no package is known for ${unknown.join(", ")}: name it in linux-packages.mjs`);
  return left;
}
