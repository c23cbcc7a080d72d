// Model for `npm run bench`: the shape of SmolLM3-3B, with the same random weights on every
// machine.
import { createReadStream, existsSync, mkdirSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { must } from "./programs.mjs";

export const SHAPE = "smollm3-3b-q4_k_m";

/** Folder for programs and models that outlive a clone. */
export const cache = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"),
  "goldcrest-bench",
);

/** Returns the file, written once, and read so that it is in the page cache. */
export async function shapedModel(goldcrest) {
  const file = join(cache, `${SHAPE}.gguf`);
  if (!existsSync(file)) {
    console.log(`goldcrest: writing ${SHAPE} (once)`);
    mkdirSync(cache, { recursive: true });
    must(goldcrest, ["bench", "--synthetic", SHAPE, "--write", `${file}.part`]);
    renameSync(`${file}.part`, file);
  }
  for await (const _ of createReadStream(file, { highWaterMark: 16 << 20 }));
  return file;
}
