import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Root of the repository. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Manifest of the cargo workspace. */
export const manifest = join(root, "src-tauri", "Cargo.toml");
