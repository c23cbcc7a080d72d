import { defineConfig } from "vite";

/** The rendering of answers as one script, which the app has in it for exports (`npm run build:ui`). */
export default defineConfig({
  clearScreen: false,
  publicDir: false,
  build: {
    target: "es2023",
    outDir: "dist-export",
    emptyOutDir: true,
    lib: {
      entry: "src/export.ts",
      formats: ["iife"],
      name: "goldcrest",
      fileName: () => "answers.js",
    },
  },
});
