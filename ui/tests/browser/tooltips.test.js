// Tooltips: drawn by the page, so that they look like the rest and show keys.
import assert from "node:assert/strict";
import { ask, button, chats, ENDLESS, log, scenes, soon } from "./window.js";

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

scene("it stays while an answer grows, and goes with its control", {}, async (page) => {
  await ask(page, ENDLESS);
  await button(page, "Stop").hover();
  await tip(page).waitFor();
  const length = async () => (await log(page).innerText()).length;
  const before = await length();
  await soon(async () => assert.ok((await length()) > before + 400));
  assert.ok(await isShown(page), "the view has followed the answer");
  // Not by a press, which would hide it.
  await page.evaluate(() => {
    for (const chat of window.stage.library.chats.keys()) void window.stage.stop(chat);
  });
  await button(page, "Stop").waitFor({ state: "detached" });
  // Send may have taken its place under the pointer.
  await soon(async () => {
    const isStops = (await isShown(page)) && /Stop/.test(await tip(page).innerText());
    assert.equal(isStops, false);
  });
});

scene("a name in parentheses is no key", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await page.setViewportSize({ width: 420, height: 720 });
  await page.keyboard.press("F2");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("A long list of what is to be done before the summer (a+a)");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: /summer/ }).hover();
  await tip(page).waitFor();
  assert.match(await tip(page).innerText(), /summer \(a\+a\)$/);
  assert.equal(await tip(page).locator("kbd").count(), 0);
});

scene("a chat that has the focus shows and describes it, too", {}, async (page) => {
  await chats(page).getByText("Borrow checker").click();
  await page.mouse.move(700, 300);
  const row = chats(page).getByRole("button", { name: /^Borrow checker/ });
  await row.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await tip(page).waitFor();
  assert.equal(await row.getAttribute("aria-describedby"), await tip(page).getAttribute("id"));
  assert.match(await tip(page).innerText(), /its owner\n.*\d\d:\d\d$/);
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
