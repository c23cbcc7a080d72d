// The app's own context menus in place of the web view's.
import assert from "node:assert/strict";
import { button, calls, chats, log, message, scenes } from "./window.js";

const scene = scenes();
const SOURDOUGH = "Sourdough that does not rise";

const OF_CHAT = ["Rename", "Pin", "Move to folder…", "Archive", "Export…", "Print…", "Delete"];

const menu = (page) => page.getByRole("menu");
const items = (page) => menu(page).getByRole("menuitem").locator(".label").allTextContents();
const item = (page, name) => menu(page).getByRole("menuitem", { name, exact: true });
const open = async (page) => {
  await chats(page).getByText(SOURDOUGH).click();
  await log(page).waitFor();
};
const focused = (page) =>
  page.evaluate(() => {
    const { activeElement } = document;
    return (activeElement.querySelector(".label") ?? activeElement).textContent.trim();
  });

/** Returns true if the web view's own menu would open here. */
const ownMenu = (locator) =>
  locator.evaluate((element) =>
    element.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true })),
  );

const QUESTION = [
  "Copy message",
  "Edit message",
  "New chat from here",
  "Delete message and what follows",
];
const ANSWER = [
  "Regenerate",
  "Shorter",
  "Longer",
  "Without thinking",
  "With thinking",
  "Copy answer",
  "Edit answer",
  "Continue",
  "New chat from here",
  "Delete answer and what follows",
];

scene("a chat's menu renames and deletes it", {}, async (page) => {
  const row = chats(page).getByText(SOURDOUGH);
  await row.click({ button: "right" });
  assert.deepEqual(await items(page), OF_CHAT);
  await item(page, "Rename").click();
  const title = page.getByRole("textbox", { name: "Chat title" });
  await title.fill("Bread");
  await title.press("Enter");
  await chats(page).getByText("Bread").click({ button: "right" });
  await item(page, "Delete").click();
  await button(page, "Undo").waitFor();
  assert.equal(await chats(page).getByText("Bread").count(), 0);
});

scene("a message's menu copies, edits and regenerates it", {}, async (page) => {
  await open(page);
  await log(page).locator(".bubble").click({ button: "right" });
  assert.deepEqual(await items(page), QUESTION);
  await item(page, "Edit message").click();
  await page.getByRole("textbox", { name: "Edit message text" }).press("Escape");
  const answer = log(page).locator(".answer p").first();
  await answer.click({ button: "right" });
  assert.deepEqual(await items(page), ANSWER);
  await item(page, "Regenerate").click();
  await log(page).getByText("2/2").waitFor();
});

scene("marked text can be copied and searched for", {}, async (page) => {
  await open(page);
  const question = log(page).locator(".bubble .piece");
  const { x, y } = await question.evaluate((bubble) => {
    const range = document.createRange();
    const words = [...bubble.childNodes].find((node) => node.textContent.includes("sourdough"));
    range.setStart(words, words.textContent.indexOf("sourdough"));
    range.setEnd(range.startContainer, range.startOffset + "sourdough".length);
    document.getSelection().removeAllRanges();
    document.getSelection().addRange(range);
    const { x, y } = range.getBoundingClientRect();
    return { x, y };
  });
  await page.mouse.click(x + 5, y + 5, { button: "right" });
  assert.deepEqual(await items(page), ["Copy", "Search chats for “sourdough”", ...QUESTION]);
  await item(page, "Search chats for “sourdough”").click();
  const search = page.getByRole("searchbox");
  assert.equal(await search.inputValue(), "sourdough");
  assert(await search.evaluate((box) => box === document.activeElement));
  await page.getByRole("list", { name: "Search results" }).getByText("My").waitFor();
});

scene("a link's menu opens and copies its address", {}, async (page) => {
  await chats(page).getByText("How does compound interest work?").click();
  await log(page).getByRole("link").click({ button: "right" });
  assert.deepEqual((await items(page)).slice(0, 2), ["Open link…", "Copy link address"]);
  await item(page, "Open link…").click();
  await page.getByRole("dialog").getByText("en.wikipedia.org").first().waitFor();
});

scene("marked text in a dialog can be copied", {}, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await chats(page).getByText("How does compound interest work?").click();
  await log(page).getByRole("link").click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("en.wikipedia.org").dblclick();
  await dialog.getByText("en.wikipedia.org").click({ button: "right" });
  assert.deepEqual(await items(page), ["Copy"]);
  await page.keyboard.press("Escape");
  assert.equal(await menu(page).count(), 0);
  assert.equal(await dialog.count(), 1, "Escape closes the menu alone");
  await dialog.getByText("en.wikipedia.org").click({ button: "right" });
  await item(page, "Copy").click();
  assert.equal(await menu(page).count(), 0);
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /wikipedia/);
});

scene("elsewhere there is no menu, and text fields keep their own", {}, async (page) => {
  await open(page);
  for (const place of [page.getByText("Goldcrest").first(), page.locator("header").last()]) {
    assert.equal(await ownMenu(place), false, "the web view's menu does not come");
    assert.equal(await menu(page).count(), 0);
  }
  assert.equal(await ownMenu(message(page)), true);
  assert.equal(await ownMenu(page.getByRole("searchbox")), true);
  assert.equal(await menu(page).count(), 0);
});

for (const key of ["ContextMenu", "Shift+F10"])
  scene(`${key} opens the menu of what has the focus`, {}, async (page) => {
    await button(page, "Search chats, messages and commands").focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("End");
    await page.keyboard.press(key);
    assert.deepEqual(await items(page), OF_CHAT);
    assert.equal(await focused(page), "Rename");
    await page.keyboard.press("ArrowDown");
    assert.equal(await focused(page), "Pin");
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowDown");
    assert.equal(await focused(page), "Rename", "it goes round");
    await page.keyboard.press("End");
    assert.equal(await focused(page), "Delete");
    await page.keyboard.press("Escape");
    assert.equal(await menu(page).count(), 0);
    assert.equal(await focused(page), "Notes for the talk on bird migration");
    await page.keyboard.press(key);
    await page.keyboard.press("Enter");
    await page.getByRole("textbox", { name: "Chat title" }).waitFor();
  });

scene("the keyboard reaches a message's menu from its actions", {}, async (page) => {
  await open(page);
  await button(page, "Copy answer").focus();
  await page.keyboard.press("ContextMenu");
  assert.deepEqual(await items(page), ANSWER);
});

scene("a menu closes by a press elsewhere, and lies within the window", {}, async (page) => {
  await chats(page).getByText(SOURDOUGH).click({ button: "right" });
  await page.mouse.click(700, 300);
  assert.equal(await menu(page).count(), 0);
  await open(page);
  await page.setViewportSize({ width: 420, height: 400 });
  await log(page)
    .locator(".answer p")
    .first()
    .click({ button: "right", position: { x: 300, y: 5 } });
  const { x, y, width, height } = await menu(page).boundingBox();
  assert(x >= 0 && y >= 0 && x + width <= 420 && y + height <= 400);
});

scene(
  "while an answer is written, nothing of a message can be changed",
  { pause: 60 },
  async (page) => {
    await open(page);
    await message(page).fill("Tell me a story");
    await page.keyboard.press("Enter");
    await button(page, "Stop").waitFor();
    await log(page).locator(".answer p").first().click({ button: "right" });
    assert(await item(page, "Edit answer").isDisabled());
    assert(await item(page, "Regenerate").isDisabled());
    await item(page, "Copy answer").click();
    assert.deepEqual(await calls(page, "editMessage"), []);
  },
);
