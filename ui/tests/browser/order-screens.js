// States of the list of chats and its actions, for the contact sheet of screens.js.
import { answered, ask, button, chats, pass } from "./window.js";

/** Opens the drawer with the list in a narrow window. */
async function showChats(page) {
  if (!(await chats(page).isVisible())) await page.keyboard.press("Control+b");
}

async function onMenu(page, title, name) {
  await showChats(page);
  // A notice may cover the chat.
  await pass(page);
  await chats(page).getByText(title).click({ button: "right" });
  await page.getByRole("menuitem", { name, exact: true }).click();
}

/** Prepares pinned chats and folders. */
async function ordered(page) {
  await showChats(page);
  await onMenu(page, "Sourdough", "Pin");
  for (const [title, folder] of [
    ["Borrow checker", "Work"],
    ["Renaming 4,000", "Work"],
    ["Notes for the talk", "Birds and other small animals of the north"],
  ]) {
    await onMenu(page, title, "Move to folder…");
    await page.getByRole("combobox", { name: "Folder" }).fill(folder);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(60);
  }
}

async function binned(page) {
  await showChats(page);
  for (const title of ["Sourdough", "Packing list"]) await onMenu(page, title, "Delete");
  await button(page, "Bin").click();
}

export async function openChat(page, title) {
  await showChats(page);
  await chats(page).getByText(title).click();
}

export const orderScreens = {
  deleted: {
    act: async (page) => {
      await page.getByText("Sourdough").hover();
      await page.getByRole("button", { name: "Menu of “Sourdough" }).click();
      await page.getByRole("menuitem", { name: "Delete" }).click();
      await button(page, "Undo").waitFor();
    },
  },
  order: { act: ordered },
  "order-drag": {
    act: async (page) => {
      await ordered(page);
      await page.mouse.move(80, 330);
      const from = await chats(page).getByText("Packing list").boundingBox();
      const to = await chats(page).getByText("Work", { exact: true }).boundingBox();
      await page.mouse.move(from.x + 20, from.y + 8);
      await page.mouse.down();
      await page.mouse.move(to.x + 30, to.y + 8, { steps: 6 });
    },
  },
  "order-selected": {
    act: async (page) => {
      await ordered(page);
      await chats(page)
        .getByText("How does compound")
        .click({ modifiers: ["Control"] });
      await chats(page)
        .getByText("Packing list")
        .click({ modifiers: ["Shift"] });
    },
  },
  "order-menu": {
    act: async (page) => {
      await ordered(page);
      await chats(page).getByText("Packing list").click({ button: "right" });
    },
  },
  "order-begin": {
    act: async (page) => {
      await showChats(page);
      await button(page, "More ways to begin").click();
    },
  },
  "order-folder": {
    act: async (page) => {
      await ordered(page);
      await onMenu(page, "Packing list", "Move to folder…");
      await page.keyboard.type("w");
    },
  },
  "order-folder-name": {
    act: async (page) => {
      await showChats(page);
      await button(page, "More ways to begin").click();
      await page.getByRole("menuitem", { name: "New folder" }).click();
      await page.getByRole("textbox", { name: "Folder name" }).waitFor();
    },
  },
  archived: {
    act: async (page) => {
      await showChats(page);
      for (const title of ["Sourdough", "Renaming 4,000"]) await onMenu(page, title, "Archive");
      await button(page, "Archived chats").click();
      await page.getByRole("list", { name: "Archived chats" }).getByText("Sourdough").click();
    },
  },
  bin: {
    act: async (page) => {
      await binned(page);
      await page.getByRole("list", { name: "Bin" }).getByText("Sourdough").click();
      await page.getByText("In the bin.").waitFor();
    },
  },
  "bin-empty": {
    act: async (page) => {
      await showChats(page);
      await button(page, "Bin").click();
    },
  },
  "bin-asks": {
    act: async (page) => {
      await binned(page);
      await button(page, "Empty bin…").click();
    },
  },
  "title-renaming": {
    act: async (page) => {
      await openChat(page, "Sourdough");
      await page.keyboard.press("F2");
      await page.getByRole("textbox", { name: "Chat title" }).waitFor();
    },
  },
  "temporary-new": {
    act: async (page) => {
      await page.keyboard.press("Control+Shift+N");
      await page.getByRole("heading", { name: "Temporary chat" }).first().waitFor();
    },
  },
  temporary: {
    rate: 4000,
    act: async (page) => {
      await page.keyboard.press("Control+Shift+N");
      await page.getByRole("heading", { name: "Temporary chat" }).first().waitFor();
      await ask(page, "Tell me a very short story about a goldcrest");
      await answered(page);
    },
  },
};
