// Accessibility: headings, lists with a single tab stop, descriptions, text direction.
import assert from "node:assert/strict";
import { answered, ask, button, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();
const SOURDOUGH = "Sourdough that does not rise";

const headings = (page) =>
  page
    .getByRole("heading")
    .evaluateAll((all) => all.map((each) => `${each.tagName.slice(1)} ${each.textContent.trim()}`));

scene("every message is a heading, with those of its answer below it", {}, async (page) => {
  assert((await headings(page)).includes("1 New chat"), "a new chat has its heading");
  await ask(page, "Say: # First\n\n## Second\n\nWords.");
  await answered(page);
  const found = (await headings(page)).slice(-5);
  assert.deepEqual(found.slice(1), ["2 You", "2 Answer", "3 First", "4 Second"]);
  assert.match(found[0], /^1 Say:/);
});

scene("the chat's title is the first heading of the page", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await log(page).waitFor();
  const levels = (await headings(page)).map((heading) => heading[0]);
  assert.equal(levels.indexOf("1"), 0);
  assert.equal(levels.lastIndexOf("1"), 0);
});

scene("thinking is no landmark, and lists are lists", {}, async (page) => {
  await chats(page).getByText(SOURDOUGH).click();
  await log(page).getByRole("group", { name: "Thinking" }).waitFor();
  assert.equal(await page.getByRole("region").count(), 0);
  await button(page, "New chat").click();
  assert.equal(
    await page.getByRole("list", { name: "Suggestions" }).getByRole("listitem").count(),
    3,
  );
});

scene("the list of chats is one stop, with arrows inside", {}, async (page) => {
  const stops = () =>
    chats(page).evaluate((list) =>
      [...list.querySelectorAll("button")]
        .filter((each) => each.tabIndex === 0)
        .map((each) => each.textContent.trim()),
    );
  assert.deepEqual(await stops(), ["How does compound interest work?"]);
  await page.getByRole("searchbox").focus();
  await page.keyboard.press("Tab");
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  assert.equal(await focused(), "How does compound interest work?");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "A story about a small bird");
  await page.keyboard.press("End");
  assert.equal(await focused(), "Notes for the talk on bird migration");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "Notes for the talk on bird migration", "it ends there");
  await page.keyboard.press("Home");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Settings", "one stop");
  await chats(page).getByText(SOURDOUGH).click();
  await log(page).waitFor();
  await soon(async () => assert.deepEqual(await stops(), [SOURDOUGH]));
});

scene("the focus stays in the list when its chat is deleted by keyboard", {}, async (page) => {
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
  await page.getByRole("searchbox").focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  const deleted = await focused();
  await page.keyboard.press("ArrowDown");
  const next = await focused();
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Shift+F10");
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await chats(page).getByText(deleted).waitFor({ state: "detached" });
  await soon(async () => assert.equal(await focused(), next));
});

scene("what can be done with a message is one stop", {}, async (page) => {
  await chats(page).getByText(SOURDOUGH).click();
  const actions = log(page).getByRole("toolbar", { name: "Answer actions" });
  await actions.getByRole("button", { name: "Copy answer" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  assert.equal(await focused(), "Edit answer");
  await page.keyboard.press("Home");
  assert.equal(await focused(), "Copy answer");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "Message", "the next stop is the composer");
});

scene("what a setting does is read with its field", {}, async (page) => {
  await page.keyboard.press("Control+,");
  const described = (role, name) =>
    page.getByRole(role, { name }).evaluate((field) => {
      const hint = document.getElementById(field.getAttribute("aria-describedby"));
      return hint?.textContent ?? "";
    });
  assert.match(await described("radiogroup", "Send with"), /Shift\+Enter/);
  await page.getByRole("tab", { name: "General" }).click();
  assert.match(await described("switch", "Show speed under answers"), /Tokens per second/);
  await page.getByRole("tab", { name: "Answers" }).click();
  assert.match(await described("spinbutton", "Temperature"), /Default: 0\.6/);
  assert.match(await described("textbox", "Instructions"), /built-in instructions/);
  await page.getByRole("tab", { name: "Model" }).click();
  assert.match(await described("combobox", "Device"), /Now: CPU/);
});

scene("the status line says nothing of the chat before", {}, async (page) => {
  const status = page.getByRole("status").filter({ hasText: "six grams" });
  await ask(page, "Say: It weighs six grams.");
  await answered(page);
  await status.waitFor({ state: "attached" });
  await chats(page).getByText(SOURDOUGH).click();
  await status.waitFor({ state: "detached" });
});

scene("the models page takes the focus from its shortcut, and gives it back", {}, async (page) => {
  const models = page.getByRole("dialog", { name: "Models", exact: true });
  for (const close of ["Escape", "Control+Shift+M"]) {
    await message(page).focus();
    await page.keyboard.press("Control+Shift+M");
    await models.waitFor();
    assert(await models.evaluate((element) => element.contains(document.activeElement)));
    await page.keyboard.press("Tab");
    assert.equal(
      await page.evaluate(() => document.activeElement.textContent.trim()),
      "Open a model…",
    );
    await page.keyboard.press(close);
    await models.waitFor({ state: "hidden" });
    assert(await message(page).evaluate((box) => box === document.activeElement));
  }
});

scene("the model's card takes the focus from its button, and gives it back", {}, async (page) => {
  const pill = page.getByRole("button", { name: /^Model:/ });
  const card = page.getByRole("dialog", { name: "Model", exact: true });
  await pill.focus();
  await page.keyboard.press("Enter");
  await card.waitFor();
  assert(await card.evaluate((element) => element.contains(document.activeElement)));
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Models…");
  await page.keyboard.press("Escape");
  await card.waitFor({ state: "hidden" });
  assert(await pill.evaluate((button) => button === document.activeElement));
});

const HEBREW = "שלום, Goldcrest שוקל 6 גרם.";
const ARABIC =
  "# عنوان\n\nيزن الطائر خمسة غرامات.\n\n- واحد\n- two words\n\n```python\nprint(1)\n```";

scene("text from right to left reads so, everywhere", {}, async (page) => {
  const direction = (locator) => locator.evaluate((element) => getComputedStyle(element).direction);
  await message(page).fill(HEBREW);
  assert.equal(await direction(message(page)), "rtl");
  await ask(page, HEBREW);
  await answered(page);
  assert.equal(await direction(log(page).locator(".bubble .piece")), "rtl");
  assert.equal(await direction(page.getByRole("heading", { level: 1 })), "rtl");
  assert.equal(await direction(chats(page).locator(".title").first()), "rtl");
  assert.equal(await direction(page.locator("main")), "ltr");
  await ask(page, `Say: ${ARABIC}`);
  await answered(page);
  const answer = log(page).locator(".answer").last();
  const list = answer.locator("ul");
  assert.equal(await direction(list), "rtl");
  assert.equal(await list.evaluate((ul) => parseFloat(getComputedStyle(ul).paddingLeft)), 0);
  assert.equal(await direction(answer.locator("pre")), "ltr");
  const box = await answer.locator("p").boundingBox();
  const text = await answer.locator("p").evaluate((p) => {
    const range = document.createRange();
    range.selectNodeContents(p);
    const { right } = range.getBoundingClientRect();
    return right;
  });
  assert(Math.abs(box.x + box.width - text) < 2, "it begins at the right");
  await button(page, "Edit message").last().click();
  assert.equal(await direction(page.getByRole("textbox", { name: "Edit message text" })), "ltr");
  await page.keyboard.press("Escape");
  await chats(page).locator(".title").first().dblclick();
  assert.equal(await direction(page.getByRole("textbox", { name: "Chat title" })), "rtl");
  await page.keyboard.press("Escape");
  const search = page.getByRole("searchbox");
  await search.fill("שלום");
  assert.equal(await direction(search), "rtl");
  const hits = page.getByRole("list", { name: "Search results" });
  assert.equal(await direction(hits.locator(".title").first()), "rtl");
  await search.fill("כלום כזה");
  assert.equal(await direction(page.getByText("Nothing found for").locator("bdi")), "rtl");
});
