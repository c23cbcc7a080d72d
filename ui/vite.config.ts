import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { licences } from "../.scripts/licences-plugin.mjs";

const { page, worker } = licences();

export default defineConfig({
  plugins: [svelte(), page],
  clearScreen: false,
  server: { port: 5173, strictPort: true },
  build: {
    target: "safari18",
    // The content security policy allows no data: fonts.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
  },
  worker: { format: "es", plugins: () => [worker] },
  // Without this, tests would get Svelte's server half, where runes are plain values.
  ...(process.env["VITEST"] && { resolve: { conditions: ["browser"] } }),
  // A machine that does other work too is no reason to fail: some tests draw for a second on a quiet one.
  test: { include: ["src/**/*.test.ts"], testTimeout: 30_000 },
});
