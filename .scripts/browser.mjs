// Chromium for the UI tests.
import { readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { which } from "./programs.mjs";

const NAMES = ["chromium", "google-chrome-stable", "google-chrome", "chromium-browser"];

/** Paths of Chromium outside the PATH. */
const APPLICATIONS = {
  darwin: ({ HOME = "" }) =>
    ["", HOME].flatMap((home) => [
      join(home, "/Applications/Chromium.app/Contents/MacOS/Chromium"),
      join(home, "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    ]),
  win32: ({ ProgramFiles, "ProgramFiles(x86)": programsX86, LOCALAPPDATA }) =>
    [ProgramFiles, programsX86, LOCALAPPDATA]
      .filter(Boolean)
      .flatMap((folder) => [
        join(folder, "Google", "Chrome", "Application", "chrome.exe"),
        join(folder, "Chromium", "Application", "chrome.exe"),
        join(folder, "Microsoft", "Edge", "Application", "msedge.exe"),
      ]),
};

/** Returns a system browser that the tests can drive, or undefined. The argument is for tests. */
export function findBrowser({ env = process.env, platform = process.platform } = {}) {
  if (env.CHROMIUM) return env.CHROMIUM;
  const onPath = NAMES.map((name) => which(name, { env })).filter(Boolean);
  const elsewhere = APPLICATIONS[platform]?.(env) ?? [];
  return [...onPath, ...elsewhere].find((file) => isFile(file) && !isStub(file));
}

/**
 * Checks for Ubuntu's Chromium, a snap or a script for it: containers cannot run it, playwright
 * cannot drive it.
 */
function isStub(file) {
  const isSnap = file.startsWith("/snap/") || basename(realpathSync(file)) === "snap";
  const isSmall = statSync(file).size < 1 << 14;
  return isSnap || (isSmall && /snap install|\/snap\/bin/.test(readFileSync(file, "latin1")));
}

function isFile(file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
}
