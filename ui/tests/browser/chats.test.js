import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, ENDLESS, soon, Stand } from "./window.js";

let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

const button = (page, name) => page.getByRole("button", { name, exact: true });
const message = (page) => page.getByRole("textbox", { name: "Message", exact: true });
const list = (page) => page.getByRole("list", { name: "Chats", exact: true });

function scene(name, view, run) {
  test(name, async () => {
    const page = await stand.page(view);
    await run(page);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

scene("chats are grouped by date, and open at their end", { scene: "long" }, async (page) => {
  await soon(async () => {
    const groups = await list(page).getByRole("heading").allInnerTexts();
    assert.deepEqual(groups, ["Today", "Yesterday", "This week", "Older"]);
  });
  await list(page).getByText("How does compound interest work?").click();
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
  await list(page).getByText("Sourdough").dblclick();
  const title = page.getByRole("textbox", { name: "Title of the chat" });
  await title.fill("Bread");
  await title.press("Enter");
  await list(page).getByText("Bread", { exact: true }).waitFor();
  await list(page).getByText("Bread", { exact: true }).dblclick();
  await title.fill("Something else");
  await title.press("Escape");
  await title.waitFor({ state: "detached" });
  await list(page).getByText("Bread", { exact: true }).waitFor();
  assert.equal(await list(page).getByText("Something else").count(), 0);
});

scene("a deleted chat comes back by Undo", {}, async (page) => {
  const chat = list(page).getByText("Sourdough that does not rise");
  await chat.hover();
  await page.getByRole("button", { name: "Delete “Sourdough" }).click();
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
    await list(page).getByText("Sourdough").click();
    const row = list(page).getByRole("listitem").filter({ hasText: ENDLESS });
    await row.getByRole("img", { name: "Writing" }).waitFor();
    assert.equal(await button(page, "Stop").count(), 0);
    await row.getByText(ENDLESS).click();
    await button(page, "Stop").waitFor();
    await page.getByText("is not the same as").first().waitFor({ timeout: 20_000 });
  },
);

scene("search finds as one types; a hit opens its chat at the message", {}, async (page) => {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("spruce");
  const hits = page.getByRole("list", { name: "Search results" });
  await hits.getByText("A story about a small bird").waitFor();
  assert.equal(await hits.locator("mark").first().innerText(), "spruce");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.locator(".sought").waitFor();
  await page.waitForFunction(() => document.activeElement?.ariaLabel === "Message");
  const box = page.getByRole("searchbox", { name: "Search all chats" });
  await box.fill("no such word");
  await page.getByText("Nothing found").waitFor();
  await box.press("Escape");
  await list(page).waitFor();
  await page.waitForFunction(() => document.activeElement?.ariaLabel === "Message");
});

scene("every chat keeps its draft", {}, async (page) => {
  await message(page).fill("for a new chat");
  await list(page).getByText("Sourdough").click();
  await page.getByRole("log").waitFor();
  const draft = (text) => soon(async () => assert.equal(await message(page).inputValue(), text));
  await draft("");
  await message(page).fill("about bread");
  await page.keyboard.press("Control+n");
  await draft("for a new chat");
  await list(page).getByText("Sourdough").click();
  await draft("about bread");
});

scene("the keyboard reaches everything", {}, async (page) => {
  const hasCursor = () =>
    soon(async () =>
      assert(await message(page).evaluate((box) => box === document.activeElement), "the cursor"),
    );
  const current = (title) =>
    list(page).locator("[aria-current=page]", { hasText: title }).waitFor();
  await hasCursor();
  await page.keyboard.press("Shift+ArrowDown");
  await page.getByRole("log").waitFor();
  await current("How does compound");
  await page.keyboard.press("Shift+ArrowDown");
  await current("small bird");
  await page.keyboard.press("Shift+ArrowUp");
  await current("How does compound");
  await page.keyboard.press("Control+b");
  await list(page).waitFor({ state: "detached" });
  await page.keyboard.press("Control+b");
  await list(page).waitFor();
  await page.keyboard.press("Control+,");
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await page.keyboard.press("Control+n");
  assert.equal(await page.getByRole("log").count(), 1, "nothing is reached past the dialog");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await hasCursor();
});
