import assert from "node:assert/strict";
import { answered, ask, button, calls, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();

const chip = (page) => page.getByRole("button", { name: /^Preset:/ });
const card = (page) => page.getByRole("dialog", { name: "Preset and instructions" });
const dialog = (page) => page.getByRole("dialog", { name: "Presets" });
const instructions = (page) =>
  card(page).getByRole("textbox", { name: "Instructions for this chat" });
/** Asserts the accessible name of the chip. */
const says = (page, words) =>
  soon(async () => assert.equal(await chip(page).getAttribute("aria-label"), `Preset: ${words}`));
const isFocused = (element) => element === document.activeElement;

scene("a chat gets a preset and instructions of its own from its header", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await says(page, "No preset");
  await chip(page).click();
  await card(page).getByText("After a change, the model rereads this chat first").waitFor();
  await card(page)
    .getByRole("button", { name: /^Editor/ })
    .click();
  await says(page, "Editor");
  const thinking = page.getByRole("button", { name: "Thinking", exact: true });
  assert.equal(await thinking.getAttribute("aria-pressed"), "false", "Editor does not think");
  assert.match(await instructions(page).getAttribute("placeholder"), /^Correct spelling/);
  await instructions(page).fill("Answer in verse.");
  await says(page, "Editor, with instructions of its own");
  await page.keyboard.press("Escape");
  await card(page).waitFor({ state: "detached" });

  await chats(page).getByText("How does compound").click();
  await says(page, "No preset");
  await chats(page).getByText("Sourdough").click();
  await says(page, "Editor, with instructions of its own");
  await message(page).blur();
  await log(page).focus();
  await page.keyboard.press("Control+z");
  await says(page, "Editor");
});

scene("the card is reached and used by keyboard", {}, async (page) => {
  await page.keyboard.press("Control+Shift+P");
  await soon(async () => assert(await card(page).evaluate(isFocused)));
  await page.keyboard.press("Tab");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await says(page, "Coder");
  await page.keyboard.press("Tab");
  assert(await instructions(page).evaluate(isFocused), "the list is one stop");
  await page.keyboard.press("Escape");
  await card(page).waitFor({ state: "detached" });
});

scene("how a chat is answered is kept as a preset", {}, async (page) => {
  await chip(page).click();
  await instructions(page).fill("Answer in verse.");
  await card(page).getByRole("button", { name: "Save as preset…" }).click();
  await page.keyboard.type("Poet");
  await page.keyboard.press("Enter");
  await says(page, "Poet");
  assert.equal(await instructions(page).inputValue(), "");
  assert.equal(await instructions(page).getAttribute("placeholder"), "Answer in verse.");
  await page.keyboard.press("Escape");
  await ask(page, "Hello?");
  await answered(page);
  await says(page, "Poet");
  await page.keyboard.press("Control+n");
  await says(page, "No preset");
});

scene("presets are made, changed, copied, and deleted with a way back", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await chip(page).click();
  await card(page).getByRole("button", { name: "Manage presets…" }).click();
  const list = dialog(page).getByRole("list", { name: "All presets" });
  const names = () => list.locator(".name").allInnerTexts();
  const name = dialog(page).getByRole("textbox", { name: "Name" });
  await button(page, "New preset").click();
  await soon(async () => assert.equal(await name.inputValue(), "New preset"));
  await name.fill("coder");
  await name.press("Tab");
  await dialog(page).getByText("There is a preset “coder” already").waitFor();
  assert.equal(await name.inputValue(), "coder", "what was typed stays");
  await name.fill("Poet");
  await name.press("Tab");
  await soon(async () => assert.deepEqual(await names(), ["Coder", "Editor", "Poet"]));
  await dialog(page).getByRole("textbox", { name: "Instructions" }).fill("Answer in verse.");
  await dialog(page).getByRole("radio", { name: "Off" }).check();
  const temperature = dialog(page).getByRole("spinbutton", { name: "Temperature" });
  assert.equal(await temperature.getAttribute("placeholder"), "0.6");
  await temperature.fill("1.2");
  await temperature.press("Tab");
  await soon(async () => {
    const [, , content] = (await calls(page, "savePreset")).at(-1);
    assert.equal(content.name, "Poet");
    assert.equal(content.instructions, "Answer in verse.");
    assert.equal(content.thinking, false);
    assert.equal(content.sampling.temperature, 1.2);
  });
  await button(page, "Duplicate").click();
  await soon(async () => assert.deepEqual(await names(), ["Coder", "Editor", "Poet", "Poet 2"]));
  await button(page, "Delete").click();
  await page.getByText("Deleted “Poet 2”. Chats that had it are on Default now.").waitFor();
  await button(page, "Undo").click();
  await soon(async () => assert.equal((await names()).length, 4));
  await page.getByRole("switch", { name: "Use for new chats" }).click();
  await soon(async () => {
    const [, settings] = (await calls(page, "saveSettings")).at(-1);
    assert.equal(typeof settings.defaultPreset, "number");
  });
});

scene("presets are exported and imported", {}, async (page) => {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "Answers" }).click();
  await button(page, "Manage presets…").click();
  await page.getByRole("dialog", { name: "Settings" }).waitFor({ state: "detached" });
  await button(page, "Export all…").click();
  await page.getByText("Exported to presets.json").waitFor();
  assert.deepEqual((await calls(page, "exportPresets")).at(-1), ["exportPresets", [1, 2]]);
  await button(page, "Import…").click();
  await page.getByText("Imported “Tutor”.").waitFor();
  await soon(async () =>
    assert.equal(await dialog(page).getByRole("textbox", { name: "Name" }).inputValue(), "Tutor"),
  );
  await page.evaluate(() => {
    window.stage.importPresets = () =>
      Promise.reject({
        code: "other",
        message: "a.json was not imported. “presets[0].name” is missing.",
      });
  });
  await button(page, "Import…").click();
  await page.getByText("a.json was not imported. “presets[0].name” is missing.").waitFor();
});

scene("a narrow window has them in the header's menu", { width: 420 }, async (page) => {
  await button(page, "More of this chat").click();
  await page.getByRole("menuitem", { name: "Preset and instructions" }).click();
  const { x, width } = await card(page).boundingBox();
  assert(x >= 0 && x + width <= 420, `${x} and ${width}`);
  await page.keyboard.press("Escape");
  await button(page, "More of this chat").click();
  await page.getByRole("menuitem", { name: "Network connections" }).click();
  await page.getByText("Network connections: 0").waitFor();
});
