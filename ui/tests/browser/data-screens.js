// States of exports, imports, backups and the data folder, for the contact sheet of screens.js.
import { button, chats } from "./window.js";

async function settings(page) {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "Chats and data" }).click();
  await button(page, "Back up now").waitFor();
}

const end = (page, state) => page.evaluate((state) => window.stage.endTransfer(state), state);

export const dataScreens = {
  "settings-data": { act: settings },
  "settings-data-restore": {
    act: async (page) => {
      await settings(page);
      await page.getByRole("button", { name: /^Restore the backup of 21/u }).click();
    },
  },
  "settings-data-folder": {
    act: async (page) => {
      await settings(page);
      await button(page, "Move…").click();
      await button(page, "Choose the folder…").scrollIntoViewIfNeeded();
    },
  },
  "export-chat": {
    act: async (page) => {
      if (!(await chats(page).isVisible())) await page.keyboard.press("Control+b");
      await chats(page).getByText("Sourdough").click();
      await page.getByRole("log").waitFor();
      await page.evaluate(() => document.activeElement?.blur());
      await page.keyboard.press("Control+k");
      await page.keyboard.type("Export this chat");
      await page.keyboard.press("Enter");
    },
  },
  "export-running": {
    act: async (page) => {
      await settings(page);
      await button(page, "Export all…").click();
      await button(page, "Choose where…").click();
      await end(page, { name: "running", done: 0.42 });
      await page.keyboard.press("Escape");
    },
  },
  imported: {
    act: async (page) => {
      await settings(page);
      await button(page, "Import chats…").click();
      await page.keyboard.press("Escape");
      const message =
        "Imported 412 chats from ChatGPT. 3 chats were here already. " +
        "1 chat had new messages and was added as a copy.";
      await end(page, { name: "imported", message, added: true });
    },
  },
};
