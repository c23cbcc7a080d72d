// Vite plugin for the licences: collects the packages in the page, and emits licences.js, which
// About shows.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { crates, gathered, npmPackages, packageOf, packagesInStyles } from "./licences.mjs";
import { root } from "./root.mjs";

/** Name of the module in the built page. */
export const MODULE = "licences.js";

/** Plugins for the page and for its workers, which Vite bundles separately. */
export function licences() {
  const modules = new Set();
  let withCrates = true;
  const gather = (context) => [...context.getModuleIds()].forEach((id) => modules.add(id));
  const worker = {
    name: "licences-of-a-worker",
    generateBundle() {
      gather(this);
    },
  };
  const page = {
    name: "licences",
    apply: "build",
    configResolved({ mode }) {
      // The scripted page of the tests is not shipped.
      withCrates = mode !== "fake";
    },
    generateBundle() {
      gather(this);
      const names = new Set([...modules].map(packageOf).filter(Boolean));
      styles()
        .flatMap(packagesInStyles)
        .forEach((name) => names.add(name));
      const packages = [...npmPackages([...names]), ...(withCrates ? crates() : [])];
      const source = `export default ${JSON.stringify(gathered(packages))};\n`;
      this.emitFile({ type: "asset", fileName: MODULE, source });
    },
  };
  return { page, worker };
}

/** Style sheets, whose imports are not modules. */
function styles() {
  const folder = join(root, "ui", "src", "styles");
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
}
