// Vite's part of the licences: which packages end up in the page, and licences.js beside it, which About shows.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { crates, gathered, npmPackages, packageOf, packagesInStyles } from "./licences.mjs";
import { root } from "./root.mjs";

/** The name of the module in the built page. */
export const MODULE = "licences.js";

/** Plugins for the page and for its workers, which Vite bundles by themselves. */
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
      // The scripted page of the tests is in no app.
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

/** The style sheets: what they import is no module. */
function styles() {
  const folder = join(root, "ui", "src", "styles");
  return readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
}
