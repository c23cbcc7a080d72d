// The use of the model's context: gauge, card and notices.
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
const gauge = (page) => page.getByRole("button", { name: /^Context:/ });
const card = (page) => page.getByRole("dialog", { name: "Context" });
const composer = (page) => page.getByRole("form", { name: "Composer" });
const TITLE = "How does compound interest work?";
const openChat = (page) => chats(page).getByText(TITLE).click();

/** Tokens of a segment on the card. */
async function tokens(page, part) {
  const row = card(page).getByRole("row", { name: new RegExp(`^${part}`) });
  return Number((await row.getByRole("cell").first().innerText()).replaceAll(",", ""));
}

scene(
  "the gauge is there in a new chat, and its parts open by Enter and close by Escape",
  {},
  async (page) => {
    await gauge(page).and(page.getByLabel("Context: 220 of 32,768 tokens (1 %)")).waitFor();
    await message(page).fill("x".repeat(400));
    await gauge(page).and(page.getByLabel("Context: 320 of 32,768 tokens (1 %)")).waitFor();
    await gauge(page).focus();
    await page.keyboard.press("Enter");
    assert.equal(await tokens(page, "Instructions"), 220);
    assert.equal(await tokens(page, "This message"), 100);
    assert.equal(await tokens(page, "Free"), 32_768 - 320 - 1024);
    assert.equal(await tokens(page, "To be read"), 320);
    await page.keyboard.press("Escape");
    await card(page).waitFor({ state: "hidden" });
    assert.ok(await gauge(page).evaluate((button) => button === document.activeElement));
  },
);

scene("Escape closes the card, and the answer goes on", { rate: 60 }, async (page) => {
  await ask(page, ENDLESS);
  await button(page, "Stop").waitFor();
  const preset = page.getByRole("dialog", { name: "Preset and instructions" });
  const model = page.getByRole("dialog", { name: "Model" });
  for (const [opener, opened] of [
    [gauge(page), card(page)],
    [page.getByRole("button", { name: /^Preset:/ }), preset],
    [page.getByRole("button", { name: /^Model:/ }), model],
  ]) {
    await opener.click();
    await opened.waitFor();
    await page.keyboard.press("Escape");
    await opened.waitFor({ state: "hidden" });
    assert.ok(await button(page, "Stop").isVisible());
  }
  await page.keyboard.press("Escape");
  await answered(page);
});

scene("other instructions are counted at once", {}, async (page) => {
  await page.evaluate(() => {
    const { stage } = window;
    const count = stage.contextUsage.bind(stage);
    stage.contextUsage = async (chat, ...rest) => {
      const usage = await count(chat, ...rest);
      const { preset, instructions } = stage.chosen.get(chat) ?? { instructions: "" };
      return { ...usage, instructions: 100 * (preset ?? 0) + instructions.length };
    };
  });
  await openChat(page);
  await page.getByRole("button", { name: /^Preset:/ }).click();
  const preset = page.getByRole("dialog", { name: "Preset and instructions" });
  await preset.getByRole("button", { name: /^Coder/ }).click();
  await gauge(page)
    .and(page.getByLabel(/^Context: [1-9]\d\d /))
    .waitFor();
  await preset.getByRole("textbox", { name: "Instructions for this chat" }).fill("x".repeat(2000));
  await gauge(page)
    .and(page.getByLabel(/^Context: 2,/))
    .waitFor();
});

scene("it grows while an answer is written", { rate: 60 }, async (page) => {
  await ask(page, ENDLESS);
  await gauge(page).click();
  await soon(async () => assert.ok((await tokens(page, "Thinking")) > 20));
  const before = await tokens(page, "Chat");
  await soon(async () => assert.ok((await tokens(page, "Chat")) > before + 50));
  assert.equal(await tokens(page, "To be read"), 0);
});

scene("without a model it says why it shows nothing", { scene: "none" }, async (page) => {
  await gauge(page).click();
  await card(page).getByText("counted once a model is loaded").waitFor();
});

scene(
  "a chat that is nearly full offers a way on, and is left alone once that is put aside",
  { context: 1040 },
  async (page) => {
    await openChat(page);
    await composer(page).getByText("This chat is 87 % full.").waitFor();
    assert.equal(await gauge(page).locator("circle.full").count(), 1);
    await button(page, "Larger context…").click();
    await page.getByRole("dialog", { name: "Settings" }).waitFor();
    await page.keyboard.press("Escape");
    await button(page, "Dismiss").click();
    await message(page).fill("And then?");
    await page.waitForTimeout(400);
    assert.equal(await composer(page).getByText("of what the model can read").count(), 0);
  },
);

scene("a message that cannot fit says so while it is written", { context: 1040 }, async (page) => {
  await message(page).fill("x".repeat(3000));
  await composer(page)
    .getByText("This message is too long: 750 tokens, with room for 560.")
    .waitFor();
  assert.ok(await button(page, "Send").isDisabled());
  await message(page).press("Enter");
  assert.deepEqual(await calls(page, "send"), []);
  assert.equal(await composer(page).getByText("with a summary").count(), 0);
  await message(page).fill("x".repeat(300));
  await composer(page).getByText("too long").waitFor({ state: "hidden" });
});

for (const [width, most] of [
  [1100, 44],
  [420, 84],
]) {
  scene(
    `what is said above the composer is short at ${width} px`,
    { context: 800, width },
    async (page) => {
      if (width < 760) await button(page, "Show sidebar").click();
      await openChat(page);
      const notice = composer(page).locator(".notice");
      await message(page).fill("And what if I add $50 every month, for the same ten years?");
      await notice.getByText("This chat is too long for the model. It won’t see").waitFor();
      const { height } = await notice.boundingBox();
      assert.ok(height <= most, `${height} px`);
      const { words, line } = await notice.locator("p").evaluate((p) => ({
        words: p.getBoundingClientRect().width,
        line: p.parentElement.getBoundingClientRect().width,
      }));
      assert.ok(words > Math.min(280, line * 0.8), `${words} of ${line} px`);
    },
  );
}

scene(
  "a new chat begins with a summary, and leads back to the one before",
  { context: 1040, rate: 4000 },
  async (page) => {
    await openChat(page);
    await composer(page).getByRole("button", { name: "Start a new chat with a summary" }).click();
    await answered(page);
    await log(page).getByText(`Sum up our chat “${TITLE}”`).waitFor();
    await log(page).getByText("Still open", { exact: true }).waitFor();
    await page.getByRole("heading", { name: `${TITLE} (continued)` }).waitFor();
    await log(page)
      .getByRole("button", { name: `Goes on from “${TITLE}”` })
      .click();
    await page.getByRole("heading", { name: TITLE, exact: true }).waitFor();
  },
);

scene(
  "what an answer was not given is shown, and can be read again where it fits",
  { context: 800, rate: 4000 },
  async (page) => {
    await openChat(page);
    await ask(page, "And what if I add $50 every month, for the same ten years, at the end of it?");
    await answered(page);
    await log(page).getByText("It did not see the first 2 messages.").waitFor();
    const line = log(page).getByRole("separator").getByText("The model reads from here");
    await line.waitFor();
    await button(page, "Show where it begins").click();
    await soon(async () => assert.ok(await line.isVisible()));
    assert.equal(await log(page).locator(".unread").count(), 2);

    await button(page, "Include them again").click();
    await log(page)
      .getByText(/^That needs [\d,]+ tokens; there is room for 600\./)
      .waitFor();
    assert.equal(await line.count(), 1);
    await page.evaluate(() => {
      const { status } = window.stage.model;
      const model = { ...status.model, contextLength: 4096 };
      window.stage.model = { status: { state: "ready", model }, error: null };
      window.stage.emit({ type: "model", model: window.stage.model });
    });
    await gauge(page)
      .and(page.getByLabel(/of 4,096 tokens/))
      .waitFor();
    await button(page, "Include them again").click();
    await log(page).getByText("The next answer reads all of it again.").waitFor();
    assert.equal(await line.count(), 0);
    await button(page, "Send").focus();
    await log(page).focus();
    await page.keyboard.press("Control+z");
    await line.waitFor();
  },
);
