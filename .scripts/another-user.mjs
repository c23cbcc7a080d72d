// Simulates another user's machine within one process: CI runs as root in a plain environment,
// which hides failures that only others see.
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The user `nobody`. */
const NOBODY = 65534;

/**
 * Arguments for cargo that run each program unprivileged, with spaces in folder names, another
 * language and time zone, and proxies that do not answer. Empty if this user cannot switch to
 * another one.
 */
export function asAnotherUser() {
  const drop = [
    "setpriv",
    `--reuid=${NOBODY}`,
    `--regid=${NOBODY}`,
    "--clear-groups",
    "--inh-caps=-all",
  ];
  if (spawnSync(drop[0], [...drop.slice(1), "true"]).status !== 0) return [];
  const home = mkdtempSync(join(tmpdir(), "gold crest ö "));
  process.on("exit", () => rmSync(home, { recursive: true, force: true }));
  const own = ["", "tmp", "run", "data", "config", "cache"].map((name) => join(home, name));
  for (const folder of own) {
    mkdirSync(folder, { recursive: true });
    chownSync(folder, NOBODY, NOBODY);
    chmodSync(folder, 0o700);
  }
  const [, tmp, run, data, config, cache] = own;
  const nowhere = "http://127.0.0.1:9";
  const variables = {
    HOME: home,
    TMPDIR: tmp,
    XDG_RUNTIME_DIR: run,
    XDG_DATA_HOME: data,
    XDG_CONFIG_HOME: config,
    XDG_CACHE_HOME: cache,
    LC_ALL: "tr_TR.UTF-8",
    TZ: "Asia/Kathmandu",
    DISPLAY: ":77",
    WAYLAND_DISPLAY: "wayland-77",
    RUST_LOG: "trace",
    COLUMNS: "40",
    TERM: "dumb",
    HTTP_PROXY: nowhere,
    HTTPS_PROXY: nowhere,
    ALL_PROXY: nowhere,
    http_proxy: nowhere,
    https_proxy: nowhere,
    all_proxy: nowhere,
  };
  const set = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const runner = ["env", ...set, ...drop];
  return ["--config", `target.'cfg(unix)'.runner = ${JSON.stringify(runner)}`];
}
