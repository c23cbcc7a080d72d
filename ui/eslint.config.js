import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

/** Forbids imports that match `group`, with the reason. */
const forbid = (...rules) => ({
  "@typescript-eslint/no-restricted-imports": [
    "error",
    { patterns: rules.map(([group, message]) => ({ group, message })) },
  ],
});
const tauri = [["@tauri-apps/*"], "Only host/ speaks to Tauri."];
const host = [["**/host/*"], "Only state/ and main.ts know the host; views read state."];
const views = [
  [
    "**/chat/*",
    "**/sidebar/*",
    "**/palette/*",
    "**/settings/*",
    "**/models/*",
    "**/presets/*",
    "**/recovery/*",
    "**/App.svelte",
  ],
  "Arrows point from views to state, parts and text.",
];
const state = [["**/state/*"], "This folder knows nothing of the application's state."];

export default ts.config(
  { ignores: ["dist/", "dist-fake/", "dist-export/", "tests/out/", "src/host/bindings.ts"] },
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: {
      parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig },
    },
  },
  {
    rules: {
      eqeqeq: ["error", "always"],
      "no-console": "error",
      "@typescript-eslint/switch-exhaustiveness-check": "off",
      // Every {@html} takes a TrustedHTML; a plain string throws under the policy.
      "svelte/no-at-html-tags": "off",
      "svelte/prefer-svelte-reactivity": "off",
    },
  },
  // Tests print to the terminal.
  { files: ["tests/**"], rules: { "no-console": "off" } },
  { files: ["src/**"], rules: forbid(tauri, host) },
  { files: ["src/host/**"], rules: forbid(state, views) },
  {
    files: ["src/state/**", "src/main.ts"],
    rules: forbid(tauri, [views[0].slice(0, 6), views[1]]),
  },
  { files: ["src/text/**", "src/parts/**"], rules: forbid(tauri, host, state, views) },
);
