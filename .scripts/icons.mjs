// Renders every icon of the app from icons/goldcrest.svg.  Run by `npm run icons`; needs rsvg-convert (Debian: librsvg2-bin).
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./root.mjs";

const folder = join(root, "icons");
const source = readFileSync(join(folder, "goldcrest.svg"), "utf8");
// Apple's grid leaves a margin of a tenth around the tile; elsewhere the tile fills the picture.
const inset = source.replace('viewBox="0 0 512 512"', 'viewBox="-40 -40 592 592"');

function png(size, svg = source) {
  const made = spawnSync("rsvg-convert", ["-w", String(size), "-h", String(size)], {
    input: svg,
    maxBuffer: 1 << 24,
  });
  if (made.status !== 0) throw new Error(`rsvg-convert: ${made.error?.message ?? made.stderr}`);
  return made.stdout;
}

/** Windows: a directory of entries, then the PNG of each. */
function ico(sizes) {
  const images = sizes.map((size) => png(size));
  const head = Buffer.alloc(6 + 16 * sizes.length);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(sizes.length, 4);
  let offset = head.length;
  images.forEach((image, i) => {
    const entry = 6 + 16 * i;
    head.writeUInt8(sizes[i] % 256, entry);
    head.writeUInt8(sizes[i] % 256, entry + 1);
    head.writeUInt16LE(1, entry + 4);
    head.writeUInt16LE(32, entry + 6);
    head.writeUInt32LE(image.length, entry + 8);
    head.writeUInt32LE(offset, entry + 12);
    offset += image.length;
  });
  return Buffer.concat([head, ...images]);
}

/** macOS: chunks of a four-letter type, a length that counts its own header, and a PNG. */
function icns(chunks) {
  const parts = chunks.map(([type, size]) => {
    const image = png(size, inset);
    const head = Buffer.alloc(8);
    head.write(type, "latin1");
    head.writeUInt32BE(8 + image.length, 4);
    return Buffer.concat([head, image]);
  });
  const head = Buffer.alloc(8);
  head.write("icns", "latin1");
  head.writeUInt32BE(
    parts.reduce((sum, part) => sum + part.length, 8),
    4,
  );
  return Buffer.concat([head, ...parts]);
}

const files = {
  "16x16.png": png(16),
  "32x32.png": png(32),
  "128x128.png": png(128),
  "128x128@2x.png": png(256),
  "icon.png": png(512),
  "icon.ico": ico([16, 24, 32, 48, 64, 256]),
  "icon.icns": icns([
    ["icp4", 16],
    ["ic11", 32],
    ["ic12", 64],
    ["ic07", 128],
    ["ic08", 256],
    ["ic09", 512],
    ["ic10", 1024],
  ]),
};
for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
console.log(`icons: ${Object.keys(files).join(", ")}`);
