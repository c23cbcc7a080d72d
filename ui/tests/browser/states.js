// States of the window whose appearance matters.
import { openChat, orderScreens } from "./order-screens.js";
import { apiScreens } from "./api-screens.js";
import { dataScreens } from "./data-screens.js";
import { guideScreens } from "./guide-screens.js";
import { toolScreens } from "./tool-screens.js";
import { treeScreens } from "./tree-screens.js";
import { answered, ask, button, chats, message, regenerate } from "./window.js";

const QUESTION = "How does compound interest work? A table and some code would help.";
/** Opens the models page. */
async function models(page) {
  await page.keyboard.press("Control+Shift+M");
  await page.getByRole("dialog", { name: "Models" }).waitFor();
}

/** Opens the palette and searches. */
async function palette(page, words) {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(words);
  await page.waitForTimeout(300);
}

const settings = (name) => async (page) => {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name }).click();
};

async function presetCard(page) {
  await openChat(page, "How does compound interest work?");
  await page.keyboard.press("Control+Shift+p");
}

/** Scenes by name: the scene to open, the window, and the actions. */
export const screens = {
  "first-start": { scene: "first" },
  "slow-start": { scene: "slow-start", first: ["status"], act: (page) => page.waitForTimeout(900) },
  empty: {},
  "empty-bundled-model": { scene: "bundledModel" },
  reading: { reading: 60_000, act: (page) => ask(page, QUESTION) },
  thinking: {
    rate: 30,
    act: async (page) => {
      await ask(page, QUESTION);
      await page.waitForTimeout(2000);
    },
  },
  writing: {
    rate: 60,
    act: async (page) => {
      await ask(page, QUESTION);
      await page.getByRole("table").waitFor({ timeout: 20_000 });
      await page.waitForTimeout(1200);
    },
  },
  answer: {
    rate: 4000,
    height: 1500,
    act: async (page) => {
      await ask(page, QUESTION);
      await answered(page);
      await page.getByRole("button", { name: /Thought/ }).click();
      await page.getByRole("button", { name: /tokens\/s/ }).click();
      await page.getByRole("article", { name: "You" }).hover();
    },
  },
  window: {
    rate: 4000,
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page.mouse.move(0, 0);
    },
  },
  interrupted: {
    rate: 4000,
    act: async (page) => {
      await ask(page, "A question with a crash");
      await button(page, "Continue").waitFor();
    },
  },
  failed: {
    rate: 4000,
    act: async (page) => {
      await ask(page, "A question that will fail");
      await button(page, "Continue").waitFor();
    },
  },
  "long-chat": {
    scene: "long",
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page.mouse.move(640, 300);
      await page.mouse.wheel(0, -900);
      await page.getByRole("button", { name: "Go to the latest message" }).waitFor();
    },
  },
  versions: {
    rate: 4000,
    act: async (page) => {
      await ask(page, "Tell me a story");
      await answered(page);
      await regenerate(page);
      await answered(page);
    },
  },
  ...toolScreens,
  ...treeScreens,
  ...dataScreens,
  ...guideScreens,
  editing: {
    act: async (page) => {
      await openChat(page, "A story about a small bird");
      await message(page).press("ArrowUp");
    },
  },
  context: {
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await message(page).fill("And what if I add $50 every month?");
      await page.waitForTimeout(300);
      await page.getByRole("button", { name: /^Context/ }).click();
    },
  },
  "context-new-chat": {
    act: (page) => page.getByRole("button", { name: /^Context/ }).click(),
  },
  "context-unknown": {
    scene: "none",
    act: (page) => page.getByRole("button", { name: /^Context/ }).click(),
  },
  "context-nearly-full": {
    context: 1040,
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await button(page, "Dismiss").waitFor();
    },
  },
  "context-left-out": {
    rate: 4000,
    context: 880,
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await ask(
        page,
        "And what if I add $50 every month, for the same ten years, at the end of it?",
      );
      await answered(page);
      await page.waitForTimeout(1000);
      await button(page, "Show where it begins").click();
      await page.mouse.move(0, 0);
      await page.waitForTimeout(1000);
    },
  },
  "summary-chat": {
    rate: 4000,
    context: 1040,
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page
        .getByRole("form", { name: "Composer" })
        .getByRole("button", { name: "Start a new chat with a summary" })
        .click();
      await answered(page);
    },
  },
  search: {
    act: async (page) => {
      await page.keyboard.press("Control+Shift+F");
      await page.keyboard.type("bird");
      await page
        .getByRole("list", { name: "Search results" })
        .getByRole("listitem")
        .first()
        .waitFor();
    },
  },
  "search-hit": {
    scene: "long",
    act: async (page) => {
      await page.keyboard.press("Control+Shift+F");
      const hits = page.getByRole("list", { name: "Search results" });
      await page.keyboard.type("money doubles");
      await hits.locator("mark").first().waitFor();
      await page.waitForTimeout(400);
      await hits.getByRole("button").first().click();
      await page.waitForFunction(() => CSS.highlights.get("found")?.size > 0);
    },
  },
  palette: {
    act: async (page) => {
      await openChat(page, "A story about a small bird");
      await page.keyboard.press("Control+k");
    },
  },
  "palette-search": {
    scene: "long",
    act: (page) => palette(page, "compound"),
  },
  "palette-thinking": { act: (page) => palette(page, "s") },
  "palette-nothing": { act: (page) => palette(page, "xylophone") },
  slash: { act: (page) => page.keyboard.type("/") },
  "slash-argument": { act: (page) => page.keyboard.type("/theme ") },
  "slash-unknown": { act: (page) => ask(page, "/foo is what?") },
  find: {
    scene: "long",
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      // The search starts at the viewport, so the chat must have a layout.
      await page.waitForTimeout(1000);
      await page.keyboard.press("Control+f");
      await page.keyboard.type("compound");
      await page.waitForFunction(() => CSS.highlights.get("match")?.size > 0);
      await page.getByText("of 360").first().waitFor();
      await page.waitForTimeout(500);
      for (let turn = 0; turn < 3; turn++) {
        await page.keyboard.press("Shift+Enter");
        await page.waitForTimeout(500);
      }
      await page.waitForTimeout(800);
    },
  },
  "find-nothing": {
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page.keyboard.press("Control+f");
      await page.keyboard.type("nightingale");
    },
  },
  "find-right-to-left": {
    rate: 4000,
    act: async (page) => {
      await ask(
        page,
        "Say: # طائر صغير\n\nيزن الطائر خمسة أو ستة غرامات (5–6 g)، ويعيش في الغابات.",
      );
      await answered(page);
      await page.keyboard.press("Control+f");
      await page.keyboard.type("طائر");
      await page.waitForFunction(() => CSS.highlights.get("current-match")?.size > 0);
    },
  },
  "menu-chat": {
    act: (page) => chats(page).getByText("Sourdough").click({ button: "right" }),
  },
  "menu-message": {
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page.getByRole("link").click({ button: "right" });
    },
  },
  "right-to-left": {
    rate: 4000,
    act: async (page) => {
      await ask(
        page,
        "Say: # طائر صغير\n\nيزن الطائر خمسة أو ستة غرامات (5–6 g)، ويعيش في الغابات.\n\n- واحد\n- اثنان\n- two English words\n\n> اقتباس قصير.\n\n| الاسم | الوزن |\n|---|---|\n| Goldcrest | 5 g |\n\n```python\nprint(1)\n```",
      );
      await answered(page);
      await message(page).fill("מה שלומך, Goldcrest?");
    },
  },
  "model-missing": { scene: "missing-model" },
  ...orderScreens,
  ...apiScreens,
  settings: { act: settings("General") },
  "settings-model": { act: settings("Model") },
  "settings-answers": { act: settings("Answers") },
  "settings-data": { act: settings("Chats and data") },
  "settings-privacy": { act: settings("Privacy") },
  "settings-privacy-download": { scene: "download", act: settings("Privacy") },
  "settings-keyboard": { act: settings("Keyboard") },
  "settings-about": { act: settings("About") },
  "settings-search": {
    act: async (page) => {
      await settings("General")(page);
      await page.keyboard.type("mem");
    },
  },
  preset: { act: presetCard },
  "preset-own": {
    act: async (page) => {
      await presetCard(page);
      await page.getByRole("button", { name: /^Coder/ }).click();
      await page.getByRole("textbox", { name: "Instructions for" }).fill("Answer in Rust only.");
      await page.getByRole("button", { name: "Save as preset…" }).click();
    },
  },
  presets: {
    act: async (page) => {
      await presetCard(page);
      await page.getByRole("button", { name: "Manage presets…" }).click();
    },
  },
  model: { act: (page) => page.getByRole("button", { name: /^Model:/ }).click() },
  "model-error": {
    scene: "error",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  "model-rejected-gpu": {
    scene: "rejected-gpu",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  "model-format": {
    scene: "format",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  "model-crashed": { scene: "crashed" },
  "first-download": { scene: "first-download" },
  "first-found": { scene: "first-found" },
  download: { scene: "download" },
  "download-paused": { scene: "download-paused" },
  "download-failed": { scene: "download-failed" },
  "download-waiting": { scene: "download-waiting" },
  "models-waiting": { scene: "download-waiting", act: models },
  "download-verifying": { scene: "download-verifying" },
  "download-card": {
    scene: "download",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  "first-checking": { scene: "first-checking" },
  "first-other": { scene: "first-other" },
  "does-not-fit": { scene: "does-not-fit" },
  "no-room": { scene: "no-room" },
  ejected: { scene: "ejected" },
  "ejected-card": {
    scene: "ejected",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  models: { act: models },
  "models-empty": { scene: "bundledModel", act: models },
  "models-scanning": { scene: "scanning", act: models },
  "models-found": { scene: "found", height: 1000, act: models },
  "models-download": { scene: "download", act: models },
  "models-failed": { scene: "download-failed", act: models },
  "models-does-not-fit": { scene: "does-not-fit", act: models },
  "models-menu": {
    scene: "found",
    act: async (page) => {
      await models(page);
      await page.getByRole("button", { name: "More for SmolLM3-3B, Q8_0" }).first().click();
    },
  },
  "models-address": {
    scene: "bundledModel",
    act: async (page) => {
      await models(page);
      await page.getByRole("textbox", { name: "Get from an address" }).fill("http://example.org/a");
      await page.keyboard.press("Enter");
      await page.getByRole("alert").waitFor();
    },
  },
  "models-check": {
    act: async (page) => {
      await models(page);
      await page.getByRole("button", { name: "More for SmolLM3-3B, Q4_K_M" }).click();
      await page.getByRole("menuitem", { name: "Check this model" }).click();
      await page.getByText("Goldcrest and candle agree").waitFor();
    },
  },
  "disk-full": {
    act: async (page) => {
      await page.evaluate(() => (window.stage.full = true));
      await ask(page, "How does compound interest work?");
      await page.getByRole("alert").waitFor();
    },
  },
  refused: {
    act: async (page) => {
      await ask(page, "Please refuse this");
      await page.getByRole("alert").waitFor();
    },
  },
  "settings-model-context": {
    act: async (page) => {
      await page.evaluate(async () => {
        const { model } = (await window.stage.snapshot()).model.status;
        const contextNote =
          "131,072 tokens were requested, but 40,960 are used: more do not fit in the free memory.";
        const status = {
          state: "ready",
          model: { ...model, contextLength: 40960, contextNote },
        };
        window.stage.emit({ type: "model", model: { status, error: null } });
      });
      await settings("Model")(page);
    },
  },
  "settings-model-overridden": {
    scene: "overridden",
    height: 1000,
    act: settings("Model"),
  },
  "settings-answers-own": {
    height: 1000,
    act: async (page) => {
      await settings("Answers")(page);
      await page.getByRole("spinbutton", { name: "Temperature" }).fill("0.9");
      await page.keyboard.press("Tab");
      await page.getByRole("button", { name: "Use the model’s defaults" }).scrollIntoViewIfNeeded();
    },
  },
  loading: {
    scene: "loading",
    act: (page) => page.getByRole("button", { name: /^Model:/ }).click(),
  },
  link: {
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await page.getByRole("link").click();
    },
  },
  drop: { act: (page) => page.evaluate(() => window.stage.emit({ type: "dragging", over: true })) },
  "no-model": { scene: "none" },
  small: {
    width: 720,
    height: 540,
    act: (page) => openChat(page, "How does compound interest work?"),
  },
  damaged: { scene: "damaged", first: ["heading"] },
  "damaged-copies": {
    scene: "damaged",
    first: ["heading"],
    act: (page) => page.getByText("Other backups").click(),
  },
  "damaged-part": { scene: "damaged-part", first: ["heading"] },
  "damaged-alone": { scene: "damaged-alone", first: ["heading"] },
  "folder-missing": { scene: "folder-missing", first: ["heading"] },
  "disk-full-start": { scene: "full", first: ["heading"] },
  "small-first": { scene: "first", width: 720, height: 540 },
  "no-sidebar": {
    width: 800,
    height: 540,
    act: async (page) => {
      await openChat(page, "A story about a small bird");
      await page.keyboard.press("Control+b");
    },
  },
  "wide-models": { scene: "found", width: 2560, height: 1440, act: models },
  "wide-first": { scene: "first", width: 2560, height: 1440 },
  wide: {
    width: 2560,
    height: 1080,
    act: (page) => openChat(page, "How does compound interest work?"),
  },
};

/** States to check in the narrowest window, too: 840 pixels at 200 % zoom. */
for (const name of [
  "first-start",
  "first-download",
  "first-found",
  "first-checking",
  "first-other",
  "settings-model-overridden",
  "api-header",
  "settings-api",
  "settings-api-key",
  "download-failed",
  "download-waiting",
  "does-not-fit",
  "ejected",
  "context",
  "context-nearly-full",
  "context-left-out",
  "summary-chat",
  "models-found",
  "models-download",
  "models-failed",
  "models-address",
  "download-card",
  "failed",
  "settings-model-context",
  "settings-answers-own",
  "settings",
  "settings-privacy",
  ...Object.keys(apiScreens),
  "settings-search",
  "preset",
  "preset-own",
  "presets",
  "model-format",
  "model-crashed",
  "model-missing",
  "menu-message",
  "search-hit",
  "palette",
  "palette-search",
  "slash",
  ...Object.keys(dataScreens),
  ...Object.keys(toolScreens),
  "regenerate-menu",
  "answer-now",
  "mode-cost",
  "find",
  "right-to-left",
  "order",
  "order-selected",
  "order-folder",
  "bin",
  "bin-asks",
  "temporary",
  "temporary-new",
  "title-renaming",
  "disk-full",
  "refused",
  "damaged",
  "damaged-copies",
  "folder-missing",
])
  screens[`${name}-narrow`] = { ...screens[name], width: 420, height: 720 };
