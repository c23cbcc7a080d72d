// Failures, with only those actions that can help.
import assert from "node:assert/strict";
import { answered, ask, button, calls, chats, log, scenes, soon } from "./window.js";

const scene = scenes();

/** Opens a chat whose last answer failed with this error and has no text. */
async function openFailed(page, error) {
  await page.evaluate((error) => {
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ role }) => role === "assistant"))
        Object.assign(message, { state: "failed", error, parts: [] });
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ stats }) => stats))
        message.stats = { ...message.stats, tokens: 0, tokensPerSecond: 0, firstTokenMs: 0 };
  }, error);
  await chats(page).getByText("Sourdough").click();
  await log(page).getByRole("note").waitFor();
}

const TOO_LONG = {
  code: "too-long",
  message:
    "This message is too long: about 259,000 tokens, and this model has room for 1,536. Shorten it, or open a larger model.",
};

scene(
  "a message that is too long is offered to be edited, not to be continued",
  {},
  async (page) => {
    await openFailed(page, TOO_LONG);
    assert.equal(await button(page, "Continue").count(), 0);
    await log(page).getByRole("note").getByRole("button", { name: "Edit message" }).click();
    await page.getByRole("textbox", { name: "Edit message text" }).waitFor();
  },
);

for (const code of ["too-long", "answer-full"]) {
  scene(`${code}: a larger context is one press away`, {}, async (page) => {
    await openFailed(page, { ...TOO_LONG, code });
    await log(page).getByRole("note").getByRole("button", { name: "Larger context…" }).click();
    const tab = page.getByRole("dialog", { name: "Settings" }).getByRole("tab", { name: "Model" });
    assert.equal(await tab.getAttribute("aria-selected"), "true");
  });
  scene(`${code}: so is a larger model`, { scene: "bundledModel" }, async (page) => {
    await openFailed(page, { ...TOO_LONG, code });
    await log(page).getByRole("note").getByRole("button", { name: "Open a model…" }).click();
    await soon(async () => assert.equal((await calls(page, "pickModel")).length, 1));
  });
}

scene("an empty answer can be neither copied nor edited, and has no speed", {}, async (page) => {
  await openFailed(page, { code: "other", message: "The device failed." });
  for (const name of ["Copy answer", "Edit answer"])
    assert.equal(await button(page, name).count(), 0, name);
  await button(page, "Regenerate").waitFor();
  await button(page, "Continue").waitFor();
  assert.equal(
    await log(page)
      .getByRole("button", { name: /tokens\/s/ })
      .count(),
    0,
  );
});

scene("an answer that was cut off says why, and an older one asks nothing", {}, async (page) => {
  await page.evaluate(() => {
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ role }) => role === "assistant"))
        message.state = "interrupted";
  });
  await chats(page).getByText("Sourdough").click();
  const words = "Goldcrest closed before this answer was finished.";
  await log(page).getByRole("note").getByText(words, { exact: true }).waitFor();
  await button(page, "Continue").waitFor();
  await ask(page, "Tell me a story");
  await answered(page);
  assert.equal(await button(page, "Continue").count(), 0);
  await log(page).getByRole("note").getByText(words, { exact: true }).waitFor();
});

scene(
  "a model file that is gone can be found or forgotten",
  { scene: "missing-model" },
  async (page) => {
    const alert = page.getByRole("alert");
    await alert
      .getByText(
        "SmolLM3-Q4_K_M.gguf is no longer in ~/Models. You are using SmolLM2-135M-Instruct for now.",
      )
      .waitFor();
    const dot = page.locator(".pill .dot");
    const colour = () => dot.evaluate((each) => getComputedStyle(each).backgroundColor);
    const faulty = await colour();
    await alert.getByRole("button", { name: "Find it…" }).waitFor();
    await alert.getByRole("button", { name: "Forget it" }).click();
    await soon(async () => assert.equal(await alert.count(), 0));
    await page.getByRole("button", { name: "Model: SmolLM2-135M-Instruct, ready, CPU" }).waitFor();
    assert.equal(await colour(), faulty, "the bundled model worked all the while");
  },
);

scene(
  "the suggestions keep their place while something is typed",
  { scene: "first" },
  async (page) => {
    const note = page.getByText("Meanwhile, SmolLM2-135M answers.");
    const suggestion = button(page, "Is what I write private?");
    await suggestion.waitFor();
    const before = await note.boundingBox();
    await page.getByRole("textbox", { name: "Message" }).fill("W");
    const after = await note.boundingBox();
    assert.equal(after.y, before.y);
    assert.equal(await suggestion.count(), 0);
  },
);

scene("settings that the pointer opened ring nothing before a key is pressed", {}, async (page) => {
  const ring = () =>
    page
      .getByRole("tab", { name: "General" })
      .evaluate((tab) => getComputedStyle(tab).outlineStyle);
  await button(page, "Settings").click();
  assert.equal(await ring(), "none");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+,");
  assert.equal(await ring(), "solid");
});

scene(
  "SmolLM3 can be had from every new chat with the bundled model",
  { scene: "bundledModel" },
  async (page) => {
    await chats(page).getByText("Sourdough").click();
    await button(page, "Get SmolLM3-3B").waitFor({ state: "detached" });
    await page.keyboard.press("Control+n");
    await button(page, "Get SmolLM3-3B").click();
    await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
  },
);
