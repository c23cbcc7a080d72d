// Screens with calls of tools, the tools of a chat, and the servers.
import { answered, ask, button, log } from "./window.js";

async function page(page, tab) {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: tab }).click();
}

/** Asks, allows the calls by these names, and unfolds the calls with these titles. */
const called =
  (question, allowed = [], opened = []) =>
  async (page) => {
    await ask(page, question);
    for (const name of allowed) await button(page, name).click();
    await answered(page);
    for (const name of opened)
      await log(page).getByRole("group", { name, exact: true }).getByRole("button").first().click();
    await page.mouse.move(0, 0);
  };

export const toolScreens = {
  "tool-asks": {
    act: async (page) => {
      await ask(page, "Tools: calculate, write");
      await button(page, "Allow once: Write file").waitFor();
      await page.mouse.move(0, 0);
    },
  },
  "tool-asks-each-time": {
    act: async (page) => {
      await ask(page, "Tools: forecast");
      await button(page, "Deny Forecast…").click();
      await page.mouse.move(0, 0);
    },
  },
  "tool-runs": {
    pause: 1,
    act: async (page) => {
      await ask(page, "Tools: calculate, search");
      await log(page).getByText("1 s", { exact: true }).waitFor();
    },
  },
  "tool-done": {
    rate: 4000,
    height: 1100,
    act: called(
      "Tools: calculate, python, search",
      ["Allow once: Search in chats"],
      ["Calculator", "Python", "Search in chats"],
    ),
  },
  "tool-failed": { rate: 4000, act: called("Tools: divide", [], ["Calculator"]) },
  "tool-denied": {
    rate: 4000,
    act: async (page) => {
      await ask(page, "Tools: write, files");
      await button(page, "Deny Write file…").click();
      await page.keyboard.type("Use another folder.");
      await page.keyboard.press("Enter");
      await button(page, "Allow once: Read file").click();
      await answered(page);
      const call = log(page).getByRole("group", { name: "Read file", exact: true });
      await call.getByRole("button").first().click();
      await page.mouse.move(0, 0);
    },
  },
  "tool-choice": {
    scene: "servers",
    act: (page) => page.getByRole("button", { name: /^Tools: / }).click(),
  },
  "settings-tools": {
    scene: "servers",
    height: 900,
    act: (view) => page(view, "Tools"),
  },
  "settings-servers": {
    scene: "servers",
    height: 900,
    act: async (view) => {
      await page(view, "Tools");
      await view.getByRole("button", { name: /^files/ }).click();
      await view.getByRole("button", { name: /^notes/ }).click();
      await view.getByRole("button", { name: "Log", exact: true }).first().click();
      await button(view, "Add a server…").scrollIntoViewIfNeeded();
    },
  },
  "settings-server-form": {
    scene: "servers",
    height: 900,
    act: async (view) => {
      await page(view, "Tools");
      await view.getByRole("button", { name: /^notes/ }).click();
      await button(view, "Edit…").click();
      await button(view, "Save").scrollIntoViewIfNeeded();
    },
  },
  "settings-server-paste": {
    scene: "servers",
    height: 900,
    act: async (view) => {
      await page(view, "Tools");
      await button(view, "Paste JSON…").click();
      const pasted = {
        mcpServers: { maps: { command: "uvx", args: ["maps-mcp", "/data/ada/Maps"] } },
      };
      await view.getByRole("textbox", { name: "JSON" }).fill(JSON.stringify(pasted, null, 2));
      await button(view, "Read").click();
      await button(view, "Add").scrollIntoViewIfNeeded();
    },
  },
};
