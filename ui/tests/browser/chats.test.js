import assert from "node:assert/strict";
import { ask, button, chats, ENDLESS, message, scenes, soon } from "./window.js";

const scene = scenes();

scene("chats are grouped by date, and open at their end", { scene: "long" }, async (page) => {
  await soon(async () => {
    const groups = await chats(page).locator(".group").allInnerTexts();
    assert.deepEqual(groups, ["Today", "Yesterday", "This week", "Older"]);
  });
  await chats(page).getByText("How does compound interest work?").click();
  const log = page.getByRole("log", { name: "Conversation" });
  await log.getByText("The derivation is in").last().waitFor();
  await page.waitForTimeout(200);
  await soon(async () => {
    const rest = await log.evaluate(
      (view) => view.scrollHeight - view.scrollTop - view.clientHeight,
    );
    assert(rest < 30, `${rest} px from the end`);
  });
});

scene("a chat is renamed in place", {}, async (page) => {
  await chats(page).getByText("Sourdough").dblclick();
  const title = page.getByRole("textbox", { name: "Chat title" });
  await title.fill("Bread");
  await title.press("Enter");
  await chats(page).getByText("Bread", { exact: true }).waitFor();
  await chats(page).getByText("Bread", { exact: true }).dblclick();
  await title.fill("Something else");
  await title.press("Escape");
  await title.waitFor({ state: "detached" });
  await chats(page).getByText("Bread", { exact: true }).waitFor();
  assert.equal(await chats(page).getByText("Something else").count(), 0);
});

scene(
  "a title is saved by leaving it, and taken as it is from an input method",
  {},
  async (page) => {
    const title = page.getByRole("textbox", { name: "Chat title" });
    await chats(page).getByText("Sourdough").click();
    await page.getByRole("log").waitFor();
    await page
      .getByRole("button", { name: "Sourdough that does not rise", exact: true })
      .press("F2");
    await title.fill("Brot");
    await title.evaluate((box) => {
      const init = { key: "Enter", isComposing: true, bubbles: true, cancelable: true };
      box.dispatchEvent(new KeyboardEvent("keydown", init));
    });
    assert.equal(await title.inputValue(), "Brot", "the title is still being written");
    await message(page).click();
    await chats(page).getByText("Brot", { exact: true }).waitFor();
  },
);

scene("a chat that moves to another group takes the focus from nowhere", {}, async (page) => {
  const open = chats(page).getByRole("button").first();
  await chats(page).getByText("Sourdough").click();
  await page.getByRole("log").waitFor();
  const moved = await page.evaluate(async () => {
    document.activeElement.blur();
    const focused = [];
    document.addEventListener("focusin", ({ target }) => focused.push(target.textContent));
    const { stage } = window;
    const chat = [...stage.library.chats.values()].find(({ summary }) =>
      summary.title.startsWith("Sourdough"),
    );
    stage.emit({
      type: "chatChanged",
      chat: { ...chat.summary, updatedAt: Math.floor(Date.now() / 1000) },
    });
    await new Promise((resolve) => setTimeout(resolve, 200));
    return { focused, active: document.activeElement.tagName };
  });
  assert.deepEqual(moved, { focused: [], active: "BODY" });
  assert.match(await open.textContent(), /Sourdough/u);
});

scene("a deleted chat comes back by Undo", {}, async (page) => {
  const chat = chats(page).getByText("Sourdough that does not rise");
  await chat.hover();
  await page.getByRole("button", { name: "Menu of “Sourdough" }).click();
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await page.getByText("Deleted “Sourdough").waitFor();
  await chat.waitFor({ state: "detached" });
  await button(page, "Undo").click();
  await chat.waitFor();
});

scene(
  "an answer goes on while another chat is read, and its chat shows that",
  { rate: 60 },
  async (page) => {
    await ask(page, ENDLESS);
    await chats(page).getByText("Sourdough").click();
    const row = chats(page).getByRole("listitem").filter({ hasText: ENDLESS });
    await row.getByRole("img", { name: "Writing" }).waitFor();
    assert.equal(await button(page, "Stop").count(), 0);
    await row.getByText(ENDLESS).click();
    await button(page, "Stop").waitFor();
    await page.getByText("is not the same as").first().waitFor({ timeout: 20_000 });
  },
);

scene("search finds as one types; a hit opens its chat at the message", {}, async (page) => {
  await page.keyboard.press("Control+Shift+F");
  await page.keyboard.type("spruce");
  const hits = page.getByRole("list", { name: "Search results" });
  await hits.getByText("A story about a small bird").waitFor();
  // A busy machine may have searched for a prefix between two keys.
  await hits.locator("mark").getByText("spruce", { exact: true }).first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator(".sought").waitFor();
  await page.waitForFunction(() => document.activeElement?.ariaLabel === "Message");
  const box = page.getByRole("searchbox", { name: "Search all chats" });
  await box.fill("no such word");
  await page.getByText("Nothing found").waitFor();
  await box.press("Escape");
  await chats(page).waitFor();
  await page.waitForFunction(() => document.activeElement?.ariaLabel === "Message");
});

scene("Enter in the search opens the first hit at its message", {}, async (page) => {
  await page.keyboard.press("Control+Shift+F");
  await page.keyboard.type("spruce");
  const box = page.getByRole("searchbox", { name: "Search all chats" });
  const hits = page.getByRole("list", { name: "Search results" });
  await hits.locator("mark").getByText("spruce", { exact: true }).first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  assert(await box.evaluate((box) => box === document.activeElement), "back in the box");
  await page.keyboard.press("Enter");
  await page.locator(".sought").getByText("spruce").waitFor();
});

scene("every chat keeps its draft", {}, async (page) => {
  await message(page).fill("for a new chat");
  await chats(page).getByText("Sourdough").click();
  await page.getByRole("log").waitFor();
  const draft = (text) => soon(async () => assert.equal(await message(page).inputValue(), text));
  await draft("");
  await message(page).fill("about bread");
  await page.keyboard.press("Control+n");
  await draft("for a new chat");
  await chats(page).getByText("Sourdough").click();
  await draft("about bread");
});

scene("the keyboard reaches everything", {}, async (page) => {
  const hasCursor = () =>
    soon(async () =>
      assert(await message(page).evaluate((box) => box === document.activeElement), "the cursor"),
    );
  const current = (title) =>
    chats(page).locator("[aria-current=page]", { hasText: title }).waitFor();
  await hasCursor();
  await page.keyboard.press("Shift+ArrowDown");
  await page.getByRole("log").waitFor();
  await current("How does compound");
  await page.keyboard.press("Shift+ArrowDown");
  await current("small bird");
  await page.keyboard.press("Shift+ArrowUp");
  await current("How does compound");
  await message(page).fill("In a text these keys mark it");
  await page.keyboard.press("Shift+ArrowDown");
  await current("How does compound");
  await page.keyboard.press("Control+b");
  await chats(page).waitFor({ state: "detached" });
  await page.keyboard.press("Control+b");
  await chats(page).waitFor();
  await page.keyboard.press("Control+,");
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await page.keyboard.press("Control+n");
  assert.equal(await page.getByRole("log").count(), 1, "nothing is reached past the dialog");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await hasCursor();
});
