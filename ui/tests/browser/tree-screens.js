// States of the message tree and of an answer in progress, for the contact sheet of screens.js.
import { answered, ask, button, chats, message } from "./window.js";

const QUESTION = "How does compound interest work? A table and some code would help.";

async function openChat(page, title) {
  // Opens the drawer with the list in a narrow window.
  if (!(await chats(page).isVisible())) await page.keyboard.press("Control+b");
  await chats(page).getByText(title).click();
}

export const treeScreens = {
  "regenerate-menu": {
    rate: 4000,
    act: async (page) => {
      await ask(page, "Tell me a story");
      await answered(page);
      await button(page, "Regenerate").click();
    },
  },
  "message-menu": {
    rate: 4000,
    act: async (page) => {
      await ask(page, "Tell me a story");
      await answered(page);
      await button(page, "More").last().click();
    },
  },
  "answer-now": {
    pause: 12,
    act: async (page) => {
      await ask(page, QUESTION);
      await button(page, "Answer now").waitFor();
      await message(page).fill("And then as a graph?");
      await message(page).press("Enter");
    },
  },
  "mode-cost": {
    rate: 4000,
    act: async (page) => {
      await openChat(page, "How does compound interest work?");
      await button(page, "Thinking").last().click();
      await message(page).fill("And over 30 years?");
    },
  },
  "message-deleted": {
    rate: 4000,
    act: async (page) => {
      await ask(page, "Tell me a story");
      await answered(page);
      await button(page, "More").last().click();
      await page.getByRole("menuitem", { name: /^Delete/ }).click();
      await button(page, "Undo").waitFor();
    },
  },
};
