// The local API with the tiny model of the tests, for the clients of others.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");
const app = process.env.GOLDCREST_BINARY ?? join(root, "src-tauri", "target", "debug", "goldcrest");
const model = join(root, "src-tauri/crates/engine/tests/fixtures/tiny-smollm3-q4_k_m.gguf");
/** Reason why these tests cannot run. */
export const skip = !existsSync(app) && `there is no ${app}: npm run test builds it`;

/** Starts `goldcrest serve`. Returns its address and key; the test ends it. */
export async function serving(t, ...args) {
  const options = args.includes("--model") ? args : ["--model", model, ...args];
  const child = spawn(app, ["serve", "--json", "--port", "0", ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGINT"));
  for await (const line of createInterface({ input: child.stdout })) {
    const { base_url: baseURL, key } = JSON.parse(line);
    return { baseURL, key, child };
  }
  throw new Error("goldcrest serve ended");
}
