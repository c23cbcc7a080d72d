// npm run icons: renders the icons of the packages from icons/goldcrest.svg, by Tauri's own
// command.
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { must, packageCommand } from "./programs.mjs";
import { root } from "./root.mjs";

const folder = join(root, "icons");
const config = readFileSync(join(root, "src-tauri", "tauri.conf.json"), "utf8");
const listed = JSON.parse(config).bundle.icon.map((path) => basename(path));
const scratch = mkdtempSync(join(tmpdir(), "goldcrest-icons-"));

/** Runs Tauri's command on a picture, and keeps these files. */
function render(svg, names) {
  const source = join(scratch, "icon.svg");
  writeFileSync(source, svg);
  must(...packageCommand("@tauri-apps/cli/tauri.js", "icon", source, "--output", scratch));
  for (const name of names) copyFileSync(join(scratch, name), join(folder, name));
}

const svg = readFileSync(join(folder, "goldcrest.svg"), "utf8");
// Apple's grid has a margin of a tenth around the tile; elsewhere the tile fills the picture.
const inset = svg.replace('viewBox="0 0 512 512"', 'viewBox="-40 -40 592 592"');
const isApples = (name) => name.endsWith(".icns");
render(
  svg,
  listed.filter((name) => !isApples(name)),
);
render(inset, listed.filter(isApples));
rmSync(scratch, { recursive: true });
