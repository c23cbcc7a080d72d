// The help window, and answers from the guide in a chat.
import assert from "node:assert/strict";
import { answered, ask, button, calls, message, scenes } from "./window.js";

const scene = scenes();

const help = (page) => page.getByRole("dialog", { name: "Help", exact: true });
const topics = (page) => help(page).getByRole("navigation", { name: "Topics" });
const search = (page) => help(page).getByRole("searchbox", { name: "Search the help" });

scene("F1 lists the topics, finds one as it is typed, and Esc goes back", {}, async (page) => {
  await page.keyboard.press("F1");
  await topics(page).getByRole("heading", { name: "Chats" }).waitFor();
  await search(page).fill("open a model");
  assert.equal(await topics(page).getByRole("button").count(), 1);
  await page.keyboard.press("Enter");
  await help(page).getByText("Of a model in several files").waitFor();
  await search(page).fill("nothing of the kind");
  await help(page).getByText("Nothing was found. Try other words.").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await search(page).inputValue(), "");
  await topics(page).getByRole("heading", { name: "Models" }).waitFor();
  await page.keyboard.press("Escape");
  await help(page).waitFor({ state: "detached" });
  await message(page).waitFor();
});

scene("on a narrow window a topic takes the place of the list", {}, async (page) => {
  await page.setViewportSize({ width: 420, height: 700 });
  await page.keyboard.press("F1");
  await topics(page).getByRole("button", { name: "Delete a chat" }).click();
  await help(page).getByText("for 30 days").waitFor();
  assert.equal(await topics(page).isVisible(), false);
  await help(page).getByRole("button", { name: "All topics" }).click();
  await topics(page).waitFor();
});

scene(
  "a question about the app is answered from the guide, and the model can be asked instead",
  { scene: "bundledModel" },
  async (page) => {
    await ask(page, "How do I delete a chat?");
    const log = page.getByRole("log");
    await log.getByText("for 30 days").waitFor();
    await log.getByText("From the guide").waitFor();
    await button(page, "Read more").click();
    await help(page).getByRole("heading", { name: "Delete a chat" }).waitFor();
    await page.keyboard.press("Escape");
    await button(page, "Ask the model instead").click();
    await button(page, "Previous version").waitFor();
    assert.equal((await calls(page, "regenerate")).length, 1);
    await log.getByText("In the guide:").waitFor();
    assert.equal(await log.getByText("From the guide").count(), 0);
  },
);

scene("with another model a line points to the guide", { rate: 4000 }, async (page) => {
  await ask(page, "How do I delete a chat?");
  const line = page.getByRole("log").getByText("In the guide:");
  await line.waitFor();
  await button(page, "Delete a chat").click();
  await help(page).getByRole("heading", { name: "Delete a chat" }).waitFor();
  await page.keyboard.press("Escape");
  await ask(page, "How heavy is a wren?");
  await line.waitFor({ state: "detached" });
});

scene(
  "below an answer of the small model a line leads to a better one",
  { scene: "bundledModel", rate: 4000 },
  async (page) => {
    await ask(page, "How heavy is a wren?");
    const line = page.getByRole("log").getByText("A very small model wrote this.");
    await line.waitFor();
    await ask(page, "How do I delete a chat?");
    await page.getByRole("log").getByText("From the guide").waitFor();
    assert.equal(await line.count(), 1, "the guide is no model");
    await button(page, "Get SmolLM3-3B").click();
    await page.getByRole("dialog", { name: "Models" }).waitFor();
  },
);

scene("the answer of another model has no such line", { rate: 4000 }, async (page) => {
  await ask(page, "How heavy is a wren?");
  await answered(page);
  assert.equal(await page.getByText("A very small model wrote this.").count(), 0);
});
