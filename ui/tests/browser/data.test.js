import assert from "node:assert/strict";
import { button, calls, chats, scenes, soon } from "./window.js";

const scene = scenes();

const toast = (page, text) => page.locator(".toast").getByText(text);

/** Asserts that the element has the focus and the only focus ring. */
async function focused(element) {
  assert.ok(await element.evaluate((element) => element === document.activeElement));
}

/** Ends the running transfer in this state. */
const end = (page, state) => page.evaluate((state) => window.stage.endTransfer(state), state);

async function settings(page) {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "Chats and data" }).click();
}

scene("a chat is exported from its menu, with progress and an end", {}, async (page) => {
  await chats(page).getByText("Sourdough").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Export…" }).click();
  const dialog = page.getByRole("dialog", { name: /Export “Sourdough/u });
  await dialog.getByRole("radio", { name: "JSONL" }).check();
  assert.equal(await dialog.getByRole("switch", { name: "With thinking" }).isDisabled(), true);
  await dialog.getByRole("radio", { name: "HTML" }).check();
  await dialog.getByRole("switch", { name: "With thinking" }).click();
  await button(page, "Choose where…").click();
  await soon(async () => assert.equal((await calls(page, "exportChats")).length, 1));
  const [, what] = (await calls(page, "exportChats"))[0];
  assert.deepEqual([what.format, what.thinking], ["html", false]);
  const card = page.getByRole("region", { name: "Exporting chats…" });
  await end(page, { name: "running", done: 0.42 });
  await card.getByText("42 %").waitFor();
  await button(page, "Cancel").click();
  await toast(page, "No file was written").waitFor();
  assert.equal(await card.count(), 0);
});

scene("Enter exports in the format that was chosen, and the file is shown", {}, async (page) => {
  await chats(page).getByText("Sourdough").click({ button: "right" });
  await page.getByRole("menuitem", { name: "Export…" }).click();
  const dialog = page.getByRole("dialog", { name: /Export “Sourdough/u });
  await dialog.getByRole("radio", { name: "HTML" }).check();
  await page.keyboard.press("Enter");
  await soon(async () => assert.equal((await calls(page, "exportChats")).length, 1));
  await end(page, { name: "exported", file: "~/My bread.html", chats: 1, note: null });
  await toast(page, "Exported 1 chat to My bread.html").waitFor();
  await button(page, "Show in folder").click();
  const shown = [["showExported", "~/My bread.html"]];
  await soon(async () => assert.deepEqual(await calls(page, "showExported"), shown));
});

scene("/export takes the name of the file and its format", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await page.getByRole("log").waitFor();
  await page.getByRole("textbox", { name: "Message" }).fill("/export My bread.html");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: /Export “Sourdough/u });
  assert.equal(await dialog.getByRole("radio", { name: "HTML" }).isChecked(), true);
  await soon(() => focused(button(page, "Choose where…")));
  await page.keyboard.press("Enter");
  await soon(async () => assert.equal((await calls(page, "exportChats")).length, 1));
  const [, what] = (await calls(page, "exportChats"))[0];
  assert.deepEqual([what.format, what.name], ["html", "My bread"]);
});

scene("all is exported and imported from the settings", {}, async (page) => {
  await settings(page);
  await button(page, "Export all…").click();
  await page.getByRole("dialog", { name: "Export all chats" }).waitFor();
  await page.keyboard.press("Escape");
  await button(page, "Import chats…").click();
  await page.getByRole("dialog", { name: "Settings" }).waitFor({ state: "detached" });
  const message = "Imported 12 chats from ChatGPT. 3 chats were here already.";
  await end(page, { name: "imported", message, added: true });
  await toast(page, message).waitFor();
  await page.locator(".toast").getByRole("button", { name: "Undo" }).waitFor();
});

scene("a backup is made, and restored after a question", {}, async (page) => {
  await settings(page);
  const list = page.getByRole("list", { name: "Backups" });
  assert.equal(await list.getByRole("listitem").count(), 4);
  await button(page, "Back up now").click();
  await list.getByText("24 November 2026, 14:04").waitFor();
  await list.getByRole("button", { name: /Delete the backup of 24 November 2026, 14:04/u }).click();
  await list.getByText("cannot be undone").waitFor();
  assert.deepEqual(await calls(page, "removeBackup"), []);
  await list.getByRole("button", { name: "Delete", exact: true }).click();
  await soon(async () => assert.equal(await list.getByRole("listitem").count(), 4));
  assert.equal((await calls(page, "removeBackup")).length, 1);
  await list.getByRole("button", { name: /Restore the backup of 21 November 2026/u }).click();
  await list.getByText("The present ones are kept").waitFor();
  assert.deepEqual(await calls(page, "restoreBackup"), []);
  const reloaded = page.waitForNavigation();
  await list.getByRole("button", { name: "Restore", exact: true }).click();
  await reloaded;
  await toast(page, "kept as goldcrest-set-aside-2026-11-24.db").waitFor();
});

scene("the data folder is shown, opened and moved", {}, async (page) => {
  await settings(page);
  await page.getByText("~/.local/share/goldcrest", { exact: true }).waitFor();
  await button(page, "Open folder").click();
  await button(page, "Move…").click();
  await page.getByText("Temporary chats end with that.").waitFor();
  await page.getByRole("switch", { name: "Keep a copy in the old folder" }).click();
  await button(page, "Choose the folder…").click();
  await soon(async () =>
    assert.deepEqual(await calls(page, "moveDataFolder"), [["moveDataFolder", true]]),
  );
  await end(page, { name: "moved" });
  await page.getByText("Goldcrest starts again").waitFor();
});

scene(
  "a chat is printed whole, and the window is not on the paper",
  { messages: "60" },
  async (page) => {
    await chats(page).locator("[data-row]").first().click();
    await page.evaluate(() => {
      window.beforePrint = document.querySelectorAll(".printed .bubble").length;
    });
    await page.keyboard.press("Control+p");
    await soon(async () => assert.equal((await calls(page, "printPage")).length, 1));
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".printed .bubble").count(), 30);
    assert.equal(await page.locator(".printed").isVisible(), true);
    assert.equal(await page.locator(".window").isVisible(), false);
    await page.emulateMedia({ media: "screen" });
    assert.equal(await page.locator(".printed").isVisible(), false);
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.equal(await page.locator(".printed").count(), 0);
  },
);
