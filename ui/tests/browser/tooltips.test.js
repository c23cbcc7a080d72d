// Tooltips: drawn by the page, so that they look like the rest and show keys.
import assert from "node:assert/strict";
import { button, chats, scenes, soon } from "./window.js";

const scene = scenes();

const tip = (page) => page.getByRole("tooltip");
const isShown = (page) => tip(page).isVisible();

scene("a control under the pointer says what it does, with its keys", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await button(page, "Find in this chat").hover();
  await tip(page).waitFor();
  assert.equal(await tip(page).innerText(), "Find in this chat CtrlF");
  assert.deepEqual(await tip(page).locator("kbd").allInnerTexts(), ["Ctrl", "F"]);
  // The next one follows at once.
  await button(page, "Hide sidebar").hover();
  assert.match(await tip(page).innerText(), /^Hide sidebar/);
  const { left, right, bottom } = await tip(page).evaluate((it) => it.getBoundingClientRect());
  assert.ok(left >= 0 && right <= (await page.evaluate(() => innerWidth)) && bottom > 0);
  await page.mouse.down();
  assert.equal(await isShown(page), false, "a press hides it");
  await page.mouse.up();
});

scene("the focus shows it, and assistive technology reads it", {}, async (page) => {
  await page.keyboard.press("Control+f");
  await page.keyboard.press("Tab");
  await tip(page).waitFor();
  const focused = page.locator(":focus");
  const described = await focused.getAttribute("aria-describedby");
  assert.equal(await tip(page).getAttribute("id"), described);
  await page.keyboard.press("Shift");
  assert.equal(await isShown(page), false, "a key hides it");
  assert.equal(await focused.getAttribute("aria-describedby"), null);
});

scene("a chat shows when it was used, and its title where that is cut", {}, async (page) => {
  const title = (text) => chats(page).locator(".title").filter({ hasText: text });
  await title("Sourdough").hover();
  await tip(page).waitFor();
  assert.match(await tip(page).innerText(), /^[^\n]+, \d\d:\d\d$/);
  await title("Borrow checker").hover();
  await soon(async () =>
    assert.match(
      await tip(page).innerText(),
      /^Borrow checker and the cache that outlives its owner\n.*\d\d:\d\d$/,
    ),
  );
});

scene("it lies above a dialog, and nothing has a tooltip of the system", {}, async (page) => {
  assert.equal(await page.locator("[title]").count(), 0);
  await page.keyboard.press("Control+Shift+M");
  const models = page.getByRole("dialog", { name: "Models", exact: true });
  await models.locator("[data-tip]").first().hover();
  await tip(page).waitFor();
  // The last one in the top layer lies above the others.
  assert.ok(await tip(page).evaluate((it) => it.matches(":popover-open")));
});
