// Pinned chats, folders, archive, bin, selection, the title in the header, temporary chats.
import assert from "node:assert/strict";
import { answered, ask, button, calls, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();
const SOURDOUGH = "Sourdough that does not rise";
const BIRD = "A story about a small bird";
const INTEREST = "How does compound interest work?";

const row = (page, title) => chats(page).getByRole("button", { name: title, exact: true });
const item = (page, name) => page.getByRole("menuitem", { name, exact: true });
const folder = (page, name) => chats(page).getByRole("button", { name: `Folder ${name},` });
const bar = (page) => page.getByRole("toolbar", { name: "Selected chats" });

/** Rows of the list: groups, folders and chats. */
const lines = (page, name = "Chats") =>
  page
    .getByRole("list", { name, exact: true })
    .evaluate((list) =>
      [...list.querySelectorAll(".group, .name, .title")].map((line) => line.textContent),
    );

async function choose(page, title, name) {
  await row(page, title).click({ button: "right" });
  await item(page, name).click();
}

/** Moves a chat to a new folder by the dialog. */
async function intoFolder(page, title, name) {
  await choose(page, title, "Move to folder…");
  await page.getByRole("combobox", { name: "Folder" }).fill(name);
  await page.keyboard.press("Enter");
  await folder(page, name).waitFor();
}

async function drag(page, from, to) {
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  await page.mouse.move(a.x + 30, a.y + a.height / 2);
  await page.mouse.down();
  await page.mouse.move(a.x + 36, a.y + a.height / 2 + 8, { steps: 3 });
  await page.mouse.move(b.x + 40, b.y + b.height / 2, { steps: 8 });
  await page.mouse.up();
}

scene("a pinned chat stands at the top, and Ctrl+Z takes that back", {}, async (page) => {
  await choose(page, SOURDOUGH, "Pin");
  await soon(async () =>
    assert.deepEqual((await lines(page)).slice(0, 3), ["Pinned", SOURDOUGH, "Today"]),
  );
  await page.keyboard.press("Control+z");
  await page.getByText(`Undone: pinned “${SOURDOUGH}”`).waitFor();
  assert.equal((await lines(page))[0], "Today");
  await page.keyboard.press("Control+Shift+z");
  await soon(async () => assert.equal((await lines(page))[0], "Pinned"));
  await choose(page, SOURDOUGH, "Unpin");
  await soon(async () => assert.equal((await lines(page))[0], "Today"));
});

scene("a folder is made, named in its place, folded, moved and deleted", {}, async (page) => {
  await button(page, "More ways to begin").click();
  await item(page, "New folder").click();
  const name = page.getByRole("textbox", { name: "Folder name" });
  await name.fill("Work");
  await name.press("Enter");
  await folder(page, "Work").waitFor();
  await drag(page, row(page, SOURDOUGH), folder(page, "Work"));
  await page.getByText(`Moved “${SOURDOUGH}” to “Work”`).waitFor();
  assert.deepEqual((await lines(page)).slice(0, 3), ["Work", SOURDOUGH, "Today"]);

  await folder(page, "Work").focus();
  await page.keyboard.press("ArrowLeft");
  await soon(async () => assert.equal((await lines(page))[1], "Today"));
  assert.equal(await folder(page, "Work").getAttribute("aria-expanded"), "false");
  await page.keyboard.press("ArrowRight");
  await row(page, SOURDOUGH).waitFor();

  await intoFolder(page, BIRD, "Home");
  await folder(page, "Home").click({ button: "right" });
  await item(page, "Move up").click();
  await soon(async () => assert.equal((await lines(page))[0], "Home"));
  await drag(page, folder(page, "Work"), folder(page, "Home"));
  await soon(async () => assert.equal((await lines(page))[0], "Work"));

  await folder(page, "Work").click({ button: "right" });
  await item(page, "Delete folder").click();
  await folder(page, "Work").waitFor({ state: "detached" });
  assert((await lines(page)).includes(SOURDOUGH), "its chat is still there");
  await button(page, "Undo").click();
  await soon(async () => assert.deepEqual((await lines(page)).slice(0, 2), ["Work", SOURDOUGH]));
});

scene("a chat is dragged out of its folder, and a drag is given up by Escape", {}, async (page) => {
  await intoFolder(page, SOURDOUGH, "Work");
  await drag(page, row(page, SOURDOUGH), chats(page).getByText("Today", { exact: true }));
  await page.getByText(`Moved “${SOURDOUGH}” out of folders`).waitFor();
  const from = await row(page, SOURDOUGH).boundingBox();
  const to = await folder(page, "Work").boundingBox();
  await page.mouse.move(from.x + 30, from.y + 10);
  await page.mouse.down();
  await page.mouse.move(to.x + 30, to.y + 10, { steps: 8 });
  await page.locator(".dragged").getByText(SOURDOUGH).waitFor();
  await page.keyboard.press("Escape");
  await page.mouse.up();
  await page.locator(".dragged").waitFor({ state: "detached" });
  assert.equal((await folder(page, "Work").innerText()).trim(), "Work");
  assert.equal(await log(page).count(), 0, "and it opens nothing");
});

scene("a folder may have the name of another choice", {}, async (page) => {
  await intoFolder(page, SOURDOUGH, "No folder");
  await choose(page, SOURDOUGH, "Move to folder…");
  const named = () => page.getByRole("option").locator(".name").allTextContents();
  await soon(async () => assert.deepEqual(await named(), ["No folder", "No folder"]));
  await page.getByRole("option").last().click();
  await page.getByText(`Moved “${SOURDOUGH}” out of folders`).waitFor();
});

scene("by keyboard a chat goes into a folder that is found by its name", {}, async (page) => {
  for (const [title, name] of [
    [SOURDOUGH, "Kitchen"],
    [BIRD, "Birds"],
  ])
    await intoFolder(page, title, name);
  await row(page, INTEREST).focus();
  await page.keyboard.press("Shift+F10");
  for (let step = 0; step < 2; step++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  const field = page.getByRole("combobox", { name: "Folder" });
  await field.waitFor();
  const named = () => page.getByRole("option").locator(".name").allTextContents();
  assert.deepEqual(await named(), ["Kitchen", "Birds"]);
  await page.keyboard.type("bi");
  assert.deepEqual(await named(), ["Birds", "New folder “bi”"]);
  const active = await field.getAttribute("aria-activedescendant");
  assert.equal(await page.locator(`[id="${active}"] .name`).textContent(), "Birds");
  await page.keyboard.press("Enter");
  await page.getByText(`Moved “${INTEREST}” to “Birds”`).waitFor();
  const stays = await page.evaluate(() => document.activeElement.textContent.trim());
  assert.equal(stays, INTEREST, "the focus goes with it");
  await choose(page, INTEREST, "Move to folder…");
  await page.getByText("Here now").waitFor();
  await page.getByRole("option", { name: "No folder" }).click();
  await page.getByText(`Moved “${INTEREST}” out of folders`).waitFor();
});

scene(
  "an archived chat is out of the list, found by the search, and comes back",
  {},
  async (page) => {
    await choose(page, SOURDOUGH, "Archive");
    await row(page, SOURDOUGH).waitFor({ state: "detached" });
    await page.keyboard.press("Control+Shift+F");
    await page.keyboard.type("sourdough");
    const hits = page.getByRole("list", { name: "Search results" });
    await hits.getByText("Archived").first().waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("This chat is archived.").waitFor();
    await page.getByRole("searchbox").fill("");
    await button(page, "Archived chats").click();
    assert.deepEqual(await lines(page, "Archived chats"), [SOURDOUGH]);
    await button(page, "Unarchive").click();
    await page.getByText("No chat is archived.").waitFor();
    await button(page, "Back to the chats").click();
    await row(page, SOURDOUGH).waitFor();
  },
);

scene("several chats are selected by pointer, and changed and undone as one", {}, async (page) => {
  await row(page, INTEREST).click({ modifiers: ["Control"] });
  await row(page, SOURDOUGH).click({ modifiers: ["Control"] });
  await bar(page).getByText("2 selected").waitFor();
  assert.equal(await row(page, SOURDOUGH).getAttribute("aria-pressed"), "true");
  assert.equal(await log(page).count(), 0, "selecting opens nothing");
  await row(page, BIRD).click({ button: "right" });
  assert.equal(await item(page, "Delete").count(), 1, "the menu of another chat is about that");
  await page.keyboard.press("Escape");
  await row(page, INTEREST).click({ button: "right" });
  await item(page, "Archive 2 chats").click();
  await page.getByText("Archived 2 chats").waitFor();
  await button(page, "Undo").click();
  await row(page, SOURDOUGH).waitFor();
  await button(page, "Clear selection").click();
  await bar(page).waitFor({ state: "detached" });

  await row(page, INTEREST).click({ modifiers: ["Control"] });
  await row(page, SOURDOUGH).click({ modifiers: ["Shift"] });
  await bar(page).getByText("8 selected").waitFor();
  await bar(page).getByRole("button", { name: "Delete 8 chats" }).click();
  await page.getByText("Deleted 8 chats").waitFor();
  assert.deepEqual(await lines(page), ["Older", "Notes for the talk on bird migration"]);
  await page.keyboard.press("Control+z");
  await row(page, INTEREST).waitFor();
});

scene("several chats are selected by keyboard", {}, async (page) => {
  await row(page, INTEREST).focus();
  await page.keyboard.press("Shift+ArrowDown");
  await page.keyboard.press("Shift+ArrowDown");
  await bar(page).getByText("3 selected").waitFor();
  await page.keyboard.press("Shift+ArrowUp");
  await bar(page).getByText("2 selected").waitFor();
  await page.keyboard.press("Control+a");
  await bar(page).getByText("9 selected").waitFor();
  await page.keyboard.press("Escape");
  await bar(page).waitFor({ state: "detached" });
  await page.keyboard.press("Control+Space");
  await bar(page).getByText("1 selected").waitFor();
  await bar(page).getByRole("button", { name: "Pin" }).click();
  await soon(async () => assert.deepEqual((await lines(page)).slice(0, 2), ["Pinned", BIRD]));
});

scene("the title is changed in the header, and a megabyte of it is refused", {}, async (page) => {
  await row(page, SOURDOUGH).click();
  const heading = page.getByRole("heading", { level: 1 });
  const title = page.getByRole("textbox", { name: "Chat title" });
  await heading.click();
  await title.fill("Bread");
  await title.press("Enter");
  await row(page, "Bread").waitFor();
  await page.waitForFunction(() => document.activeElement.ariaLabel === "Message");
  await page.keyboard.press("F2");
  await title.fill("Something else");
  await title.press("Escape");
  assert.equal(await heading.textContent(), "Bread");
  await button(page, "Rename this chat").click();
  await title.fill("x".repeat(1_000_000));
  await title.press("Enter");
  await page.getByText("A title has at most 200 characters; this one has 1,000,000.").waitFor();
  assert.equal((await title.inputValue()).length, 1_000_000, "what was written is still there");
  await title.press("Escape");
  await heading.click({ button: "right" });
  await item(page, "Archive").click();
  await page.getByText("This chat is archived.").waitFor();
});

scene(
  "the bin says how long, lets read, restores, and deletes for good once asked",
  {},
  async (page) => {
    for (const title of [SOURDOUGH, BIRD]) await choose(page, title, "Delete");
    await button(page, "Bin").click();
    const bin = page.getByRole("list", { name: "Bin" });
    assert.deepEqual(await lines(page, "Bin"), [BIRD, SOURDOUGH]);
    await bin.getByText("30 days").first().waitFor();
    await bin.getByText(SOURDOUGH).click();
    await page.getByText("In the bin. It is deleted for good in 30 days.").waitFor();
    await log(page).waitFor();
    assert.equal(await message(page).count(), 0, "it can be read, and nothing else");
    assert.equal(await button(page, "Edit message").count(), 0);
    assert.equal(await button(page, "Regenerate").count(), 0);
    await button(page, "Restore").click();
    await message(page).waitFor();
    await soon(async () => assert.deepEqual(await lines(page, "Bin"), [BIRD]));

    await bin.getByText(BIRD).click({ button: "right" });
    await item(page, "Delete for good…").click();
    const dialog = page.getByRole("dialog", { name: "Delete for good?" });
    await button(page, "Cancel").click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(await calls(page, "deleteForGood"), []);
    await button(page, "Empty bin…").click();
    await dialog.getByRole("button", { name: "Delete for good" }).click();
    await page.getByText("The bin is empty.").waitFor();
    assert.equal((await calls(page, "deleteForGood")).length, 1);
  },
);

scene("a temporary chat is seen to be one, and is kept when asked", {}, async (page) => {
  await message(page).fill("for a new chat");
  await page.keyboard.press("Control+Shift+N");
  await page.getByRole("heading", { name: "Temporary chat", level: 2 }).waitFor();
  await page.getByText("It is gone when Goldcrest closes").waitFor();
  assert.equal(await message(page).inputValue(), "");
  await ask(page, "A secret");
  await answered(page);
  assert.deepEqual((await lines(page)).slice(0, 3), ["Temporary", "A secret", "Today"]);
  await row(page, "A secret").click({ button: "right" });
  assert.deepEqual(await page.getByRole("menuitem").locator(".label").allTextContents(), [
    "Rename",
    "Keep this chat",
    "Export…",
    "Print…",
    "Delete",
  ]);
  await page.keyboard.press("Escape");
  await page.locator("main").getByRole("button", { name: "Keep this chat" }).click();
  await page.getByText("Kept “A secret”").waitFor();
  await soon(async () => assert.deepEqual((await lines(page)).slice(0, 2), ["Today", "A secret"]));
  assert.equal(await page.getByText("Temporary chat: not saved").count(), 0);
  await log(page).getByText("A secret").waitFor();
  await button(page, "Undo").click();
  await page.getByText("Temporary chat: not saved").waitFor();
});

scene(
  "ten thousand chats: few lines are drawn, and the keys go through all",
  { more: 10_000 },
  async (page) => {
    const drawn = () => chats(page).getByRole("listitem").count();
    assert((await drawn()) < 80, `${await drawn()} lines`);
    const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
    await chats(page).getByRole("button").first().focus();
    await page.keyboard.press("End");
    await soon(async () => assert.equal(await focused(), "Chat 10000"));
    assert((await drawn()) < 80);
    const last = page.getByRole("button", { name: "Chat 10000", exact: true });
    const { setsize, posinset } = await last.evaluate((button) => {
      const line = button.closest("li");
      return {
        setsize: Number(line.getAttribute("aria-setsize")),
        posinset: Number(line.getAttribute("aria-posinset")),
      };
    });
    assert(setsize >= 10_000 && posinset === setsize, "a screen reader knows the whole");
    await page.keyboard.press("ArrowUp");
    assert.equal(await focused(), "Chat 9999");
    await page.mouse.move(130, 400);
    await page.mouse.wheel(0, -200_000);
    await page.waitForTimeout(100);
    assert.equal(await focused(), "Chat 9999", "it keeps the focus out of sight");
    await page.keyboard.press("ArrowUp");
    await soon(async () => assert.equal(await focused(), "Chat 9998"));
    await page.keyboard.press("Home");
    await page.keyboard.press("PageDown");

    await page.keyboard.press("Control+a");
    await bar(page).getByText("10,009 selected").waitFor();
    const began = Date.now();
    await bar(page).getByRole("button", { name: "Delete 10,009 chats" }).click();
    await page.getByText("Your chats will be listed here.").waitFor();
    await page.keyboard.press("Control+z");
    await chats(page).getByRole("button").first().waitFor();
    const took = Date.now() - began;
    assert(took < 5_000, `${took} ms to delete all and take it back`);
    // An answer in progress must not slow down the list.
    const longest = await page.evaluate(async () => {
      let longest = 0;
      const [chat] = window.stage.library.chats.values();
      for (let at = 0; at < 20; at++) {
        const begin = performance.now();
        const updatedAt = Math.floor(Date.now() / 1000) + at;
        window.stage.emit({ type: "chatChanged", chat: { ...chat.summary, updatedAt } });
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        longest = Math.max(longest, performance.now() - begin);
      }
      return longest;
    });
    assert(longest < 400, `${longest} ms for one change`);
  },
);

scene("chats of one title have a date", {}, async (page) => {
  assert.equal(await chats(page).locator(".left").count(), 0);
  for (const name of [SOURDOUGH, "A story about a small bird"]) {
    await chats(page).getByText(name, { exact: true }).dblclick();
    await page.getByRole("textbox", { name: "Chat title" }).fill("The same");
    await page.keyboard.press("Enter");
  }
  await soon(async () => assert.equal(await chats(page).locator(".left").count(), 2));
});

scene("undo of a deletion shows the chat again that was on the screen", {}, async (page) => {
  await chats(page).getByText(SOURDOUGH).click();
  await log(page).waitFor();
  await chats(page).getByText(SOURDOUGH).click({ button: "right" });
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await log(page).waitFor({ state: "detached" });
  await button(page, "Undo").click();
  await log(page).waitFor();
});

scene(
  "the open chat is in sight in the list, however it was opened",
  { more: 60 },
  async (page) => {
    const row = chats(page).getByText(SOURDOUGH);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("sourdough");
    await page.keyboard.press("Enter");
    await log(page).waitFor();
    await soon(async () => {
      const { y } = await row.boundingBox();
      assert(y > 100 && y < 700, String(y));
    });
  },
);

scene(
  "in a small window no notice lies on the bar of a selection",
  { width: 420 },
  async (page) => {
    await button(page, "Show sidebar").click();
    await choose(page, SOURDOUGH, "Delete");
    const toast = page.locator(".toast");
    await toast.waitFor();
    await row(page, BIRD).click({ modifiers: ["Control"] });
    await bar(page).waitFor();
    await soon(async () => {
      const [over, below] = await Promise.all([toast.boundingBox(), bar(page).boundingBox()]);
      assert(over.y + over.height <= below.y, `${over.y} ${below.y}`);
    });
  },
);
