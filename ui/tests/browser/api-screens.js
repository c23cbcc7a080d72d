// Screens with the local API: its settings, its key, its failure, and the header.
import { button } from "./window.js";

const settings =
  (tab = "Local API") =>
  async (page) => {
    await page.keyboard.press("Control+,");
    await page.getByRole("tab", { name: tab }).click();
  };

async function switchOn(page) {
  await settings()(page);
  await page.getByRole("switch", { name: /^Let other programs/u }).click();
  await button(page, "Copy the address").waitFor();
  await page.mouse.move(0, 0);
}

export const apiScreens = {
  "api-header": { scene: "api" },
  "api-header-failed": { scene: "api-failed" },
  "settings-api-off": { act: settings() },
  "settings-api": { scene: "api", act: settings() },
  "settings-api-key": { act: switchOn },
  "settings-api-asks": {
    scene: "api",
    act: async (page) => {
      await settings()(page);
      await button(page, "New key…").click();
    },
  },
  "settings-api-sites": {
    scene: "api",
    act: async (page) => {
      await settings()(page);
      await page.getByRole("textbox", { name: "Web pages" }).fill("example.org/app");
      await button(page, "Save").click();
      await button(page, "Save").scrollIntoViewIfNeeded();
    },
  },
  "settings-api-failed": { scene: "api-failed", act: settings() },
  "settings-privacy-api": { scene: "api", act: settings("Privacy") },
};
