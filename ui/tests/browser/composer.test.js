// Drafts, pastes and the queue, and the focus of the message box.
import assert from "node:assert/strict";
import {
  answered,
  ask,
  button,
  calls,
  chats,
  ENDLESS,
  log,
  message,
  scenes,
  soon,
} from "./window.js";

const scene = scenes();

const LONG = "A line of the log that was pasted.\n".repeat(1000);

/** Simulates a paste: `insertText` fires the same "beforeinput" event. */
async function paste(page, text) {
  await message(page).focus();
  await page.keyboard.insertText(text);
}

const pastes = (page) => page.getByRole("list", { name: "Pasted texts" }).getByRole("listitem");
const waiting = (page) =>
  page.getByRole("list", { name: "Waiting messages" }).getByRole("listitem");
const hasCursor = (page) => message(page).evaluate((box) => box === document.activeElement);

scene("a long paste is a chip, which is looked at and sent", {}, async (page) => {
  await message(page).focus();
  await paste(page, "short");
  assert.equal(await message(page).inputValue(), "short");
  await paste(page, LONG);
  assert.equal(await message(page).inputValue(), "short", "nothing of it is in the box");
  await pastes(page).getByText("Pasted text, 35 KB").waitFor();
  await pastes(page).getByText("8,750 tokens").waitFor();
  await pastes(page)
    .getByRole("button", { name: /Pasted text/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Pasted text" });
  await dialog.getByText("A line of the log").first().waitFor();
  await dialog.getByRole("button", { name: "Done" }).click();
  assert(await hasCursor(page), "whoever types writes");
  await message(page).fill("Sum this up:");
  await message(page).press("Enter");
  await answered(page);
  const [[, , sent]] = await calls(page, "send");
  assert.equal(sent, `Sum this up:\n\n${LONG}`);
  assert.equal(await pastes(page).count(), 0);
});

scene("a paste that the model cannot read says so, and can be taken away", {}, async (page) => {
  await message(page).focus();
  await paste(page, "word ".repeat(200_000));
  await pastes(page).getByText("Pasted text, 1 MB").waitFor();
  await pastes(page).getByText("250,000 tokens, too long for this model").waitFor();
  await pastes(page)
    .getByRole("button", { name: /Pasted text/ })
    .click();
  const dialog = page.getByRole("dialog", { name: "Pasted text" });
  await dialog.getByRole("button", { name: "Remove" }).click();
  assert.equal(await pastes(page).count(), 0);
  assert(await hasCursor(page));
});

scene("a long text never comes into a box, whatever brings it", {}, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate((text) => navigator.clipboard.writeText(text), LONG);
  await message(page).press("Control+v");
  await soon(async () => assert.equal(await pastes(page).count(), 1));
  await page.evaluate((text) => {
    const marked = document.body.appendChild(document.createElement("pre"));
    marked.textContent = text;
    marked.id = "marked";
    Object.assign(marked.style, { position: "fixed", inset: "0 0 auto auto", height: "40px" });
    getSelection().selectAllChildren(marked);
  }, LONG);
  await page.locator("#marked").dragTo(message(page), { sourcePosition: { x: 10, y: 10 } });
  await soon(async () => assert.equal(await pastes(page).count(), 2));
  await page.evaluate(() => document.getElementById("marked").remove());
  assert.equal(await message(page).inputValue(), "");
  await message(page).press("Enter");
  await answered(page);
  await message(page).press("ArrowUp");
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  assert.equal(await editor.inputValue(), "", "nor does one that was sent, when it is edited");
  const texts = page.getByRole("list", { name: "Long texts" }).getByRole("listitem");
  assert.equal(await texts.count(), 1);
  await editor.press("Control+v");
  await soon(async () => assert.equal(await texts.count(), 2));
  await editor.fill("What is this?");
  await texts
    .getByRole("button", { name: /^Remove/ })
    .last()
    .click();
  await button(page, "Save").click();
  await soon(async () => {
    const [[, , edited]] = await calls(page, "editMessage");
    assert.equal(edited, `What is this?\n\n${LONG}\n\n${LONG.trimEnd()}`);
  });
});

scene("while a pasted text is looked at, keys are the dialog's", {}, async (page) => {
  await ask(page, ENDLESS);
  await paste(page, LONG);
  const look = pastes(page).getByRole("button", { name: /Pasted text/ });
  const dialog = page.getByRole("dialog", { name: "Pasted text" });
  await look.click();
  await dialog.waitFor();
  await page.keyboard.press("Control+n");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await button(page, "Stop").waitFor();
  assert.equal(await pastes(page).count(), 1, "it is the same chat");
});

scene("what was pasted stays in its chat, and is there after a reload", {}, async (page) => {
  await message(page).focus();
  await paste(page, LONG);
  await chats(page).getByText("A story about a small bird").click();
  await log(page).waitFor();
  assert.equal(await pastes(page).count(), 0);
  await page.keyboard.press("Control+n");
  await pastes(page).getByText("Pasted text, 35 KB").waitFor();
  assert.deepEqual(await calls(page, "savePastes"), [["savePastes", null, [LONG]]]);
});

scene(
  "a message that is sent while an answer is written waits, and is edited or taken away",
  { rate: 30 },
  async (page) => {
    await button(page, "Thinking").click();
    await ask(page, ENDLESS);
    await button(page, "Stop").waitFor();
    await message(page).fill("And another");
    assert.equal(await button(page, "Send").count(), 1, "beside Stop");
    await message(page).press("Enter");
    await waiting(page).getByText("Sends when this answer is done").waitFor();
    assert.equal(await message(page).inputValue(), "");
    await message(page).fill("And a third");
    await button(page, "Send").click();
    assert.equal(await waiting(page).count(), 2);
    assert.equal(await button(page, "Send now").count(), 1, "only the first is next");
    await waiting(page).last().getByRole("button", { name: "Remove" }).click();
    assert(await message(page).evaluate((box) => box === document.activeElement));
    await waiting(page).getByRole("button", { name: "Edit" }).click();
    assert.equal(await waiting(page).count(), 0);
    assert.equal(await message(page).inputValue(), "And another");
    await message(page).press("Enter");
    await page.keyboard.press("Escape");
    await waiting(page).getByText("Not sent yet").waitFor();
    assert.equal((await calls(page, "send")).length, 1, "a stop sends nothing");
    await waiting(page).getByRole("button", { name: "Send now" }).click();
    await log(page).getByText("And another").waitFor();
    assert.equal(await waiting(page).count(), 0);
  },
);

scene("what waits is sent when the answer is done", { rate: 400 }, async (page) => {
  await ask(page, "Tell me a story");
  await message(page).fill("What is Goldcrest?");
  await message(page).press("Enter");
  await log(page).getByText("Goldcrest is a desktop chat app").waitFor();
  assert.equal(await waiting(page).count(), 0);
  assert.equal((await calls(page, "send")).length, 2);
});

scene("whoever types outside a field writes a message", {}, async (page) => {
  await chats(page).getByText("A story about a small bird").click();
  await log(page).getByText("The goldcrest weighs").waitFor();
  await button(page, "Thinking").click();
  await page.keyboard.type("Fizzbuzz in Rust");
  assert.equal(await message(page).inputValue(), "Fizzbuzz in Rust");
  await log(page).getByText("The goldcrest weighs").click();
  await page.keyboard.type(", please");
  assert.equal(await message(page).inputValue(), "Fizzbuzz in Rust, please");
  await page.getByRole("searchbox").click();
  await page.keyboard.type("bird");
  assert.equal(await message(page).inputValue(), "Fizzbuzz in Rust, please");
});

scene("the space bar presses what the keyboard has come to", {}, async (page) => {
  await message(page).press("Tab");
  const thinking = button(page, "Thinking");
  assert(await thinking.evaluate((each) => each === document.activeElement));
  await page.keyboard.press("Space");
  assert.equal(await thinking.getAttribute("aria-pressed"), "false");
  assert.equal(await message(page).inputValue(), "");
  await page.keyboard.type("x");
  assert.equal(await message(page).inputValue(), "x");
});

scene("a dialog that was opened by mouse leaves the cursor in the box", {}, async (page) => {
  const settings = page.getByRole("button", { name: "Settings" });
  const dialog = page.getByRole("dialog", { name: "Settings" });
  for (const close of [
    () => page.keyboard.press("Escape"),
    () => dialog.getByRole("button", { name: "Close" }).click(),
  ]) {
    await settings.click();
    await dialog.waitFor();
    await close();
    await dialog.waitFor({ state: "detached" });
    await soon(async () => assert(await hasCursor(page)));
  }
  await settings.focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert(
    await settings.evaluate((each) => each === document.activeElement),
    "the keyboard's way back",
  );
});

scene("zoom by key, by wheel and by setting", {}, async (page) => {
  const zooms = async () =>
    (await calls(page, "saveSettings")).map(([, settings]) => settings.zoom);
  for (const key of ["Control++", "Control+=", "Control+-", "Control+0"])
    await page.keyboard.press(key);
  await soon(async () => assert.deepEqual(await zooms(), [110, 125, 110, 100]));
  await page.keyboard.down("Control");
  await page.mouse.move(600, 300);
  await page.mouse.wheel(0, -100);
  await page.keyboard.up("Control");
  await soon(async () => assert.equal((await zooms()).at(-1), 110));
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "General" }).click();
  await page.keyboard.press("Control+-");
  const select = page.getByRole("combobox", { name: "Zoom" });
  assert.equal(await select.inputValue(), "100", "in a dialog, too");
  await select.selectOption("200");
  await soon(async () => assert.equal((await zooms()).at(-1), 200));
});

scene(
  "below 760 pixels the sidebar lies over the chat until it is left",
  { width: 700, height: 560 },
  async (page) => {
    const sidebar = page.getByRole("complementary", { name: "Sidebar" });
    assert.equal(await sidebar.count(), 0);
    const { width } = await page.getByRole("main").boundingBox();
    await page.keyboard.press("Control+b");
    await sidebar.waitFor();
    assert.equal(
      (await page.getByRole("main", { includeHidden: true }).boundingBox()).width,
      width,
    );
    assert(await page.evaluate(() => document.activeElement?.closest("aside") !== null));
    await page.keyboard.press("Escape");
    await sidebar.waitFor({ state: "detached" });
    assert(await hasCursor(page));
    await page.keyboard.press("Control+b");
    await page.mouse.click(600, 300);
    await sidebar.waitFor({ state: "detached" });
    await page.keyboard.press("Control+Shift+F");
    await page.keyboard.type("bird");
    await page.getByRole("list", { name: "Search results" }).getByRole("button").first().click();
    await sidebar.waitFor({ state: "detached" });
    await soon(async () => assert(await hasCursor(page)));
    await page.setViewportSize({ width: 1000, height: 560 });
    await sidebar.waitFor();
  },
);

for (const [width, height] of [
  [420, 400],
  [420, 720],
  [360, 360],
])
  scene(`nothing is cut off in a window of ${width}×${height}`, { width, height }, async (page) => {
    const fits = async () => {
      const wide = await page.evaluate(() => {
        const outside = (each) => each.getBoundingClientRect().right > innerWidth + 1;
        return [
          ...document.querySelectorAll("main button, main textarea, aside button, dialog button"),
        ]
          .filter((each) => each.checkVisibility() && outside(each))
          .map((each) => each.outerHTML.slice(0, 80));
      });
      assert.deepEqual(wide, []);
    };
    await fits();
    await message(page).focus();
    await paste(page, LONG);
    await message(page).fill("line\n".repeat(9));
    await fits();
    assert(await button(page, "Send").isVisible());
    const send = await button(page, "Send").boundingBox();
    assert(send.y + send.height <= height, "Send is in the window");
    await message(page).press("Enter");
    await answered(page);
    await fits();
    await page.keyboard.press("Control+,");
    await page.getByRole("dialog", { name: "Settings" }).waitFor();
    await fits();
  });

scene("an image on the clipboard is answered by a sentence", {}, async (page) => {
  const said = page.getByText("There is no text on the clipboard. Goldcrest reads text only.");
  const paste = (type) =>
    message(page).evaluate((box, type) => {
      const clipboardData = new DataTransfer();
      if (type === "image/png") clipboardData.items.add(new File(["."], "picture.png", { type }));
      else clipboardData.setData(type, "words");
      box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    }, type);
  await paste("text/plain");
  assert.equal(await said.count(), 0);
  await paste("image/png");
  await said.waitFor();
});

scene("each chat's box has its own edits to take back", {}, async (page) => {
  await message(page).fill("a draft");
  await chats(page).getByText("Sourdough").click();
  await log(page).waitFor();
  await message(page).press("Control+z");
  assert.equal(await message(page).inputValue(), "");
  await page.getByText("There is nothing to undo.").waitFor();
});

scene("a message that is too long cannot be sent, by any way", {}, async (page) => {
  await message(page).focus();
  await paste(page, "word ".repeat(200_000));
  await message(page).press("Enter");
  await page.getByText(/^This message is too long/).waitFor();
  assert(await button(page, "Send").isDisabled());
  await message(page).press("Enter");
  assert.deepEqual(await calls(page, "send"), []);
  await button(page, "Remove the pasted text").click();
  await message(page).fill("short");
  await soon(async () => assert(await button(page, "Send").isEnabled()));
});

for (const [width, height] of [
  [1100, 720],
  [420, 720],
])
  scene(`at ${width} px a notice lies on no button`, { width, height }, async (page) => {
    if (width < 760) await button(page, "Show sidebar").click();
    await chats(page).getByText("Sourdough").click();
    await log(page).waitFor();
    await message(page).evaluate((box) => {
      const clipboardData = new DataTransfer();
      box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    });
    const toast = page.locator(".toast");
    await toast.waitFor();
    const boxes = await Promise.all([toast, page.locator("form")].map((it) => it.boundingBox()));
    assert(boxes[0].y + boxes[0].height <= boxes[1].y, JSON.stringify(boxes));
  });
