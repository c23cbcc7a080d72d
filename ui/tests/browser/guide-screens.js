// States of the help window, and of answers with the bundled model.
import { ask } from "./window.js";

export const guideScreens = {
  help: {
    act: async (page) => {
      await page.keyboard.press("F1");
      const help = page.getByRole("dialog", { name: "Help", exact: true });
      await help.getByRole("button", { name: "Temporary chats" }).click();
    },
  },
  "guide-answer": {
    scene: "bundledModel",
    rate: 4000,
    act: async (page) => {
      await ask(page, "How do I delete a chat?");
      await page.getByText("From the guide").waitFor();
    },
  },
  "small-model": {
    scene: "bundledModel",
    rate: 4000,
    act: async (page) => {
      await page.evaluate(() => (window.stage.says = "The capital of France is Paris."));
      await ask(page, "What is the capital of France?");
      await page.getByText("A very small model wrote this.").waitFor();
    },
  },
  repeated: {
    scene: "bundledModel",
    rate: 4000,
    act: async (page) => {
      const line = "Add up the numbers, and then go on with the next number.\n\n";
      await page.evaluate((text) => (window.stage.says = text), line.repeat(5));
      await ask(page, "Explain a loop");
      await page.getByText("Stopped: it was repeating itself.", { exact: true }).waitFor();
    },
  },
};
