// Responses that reach the page after the user has moved on.
import assert from "node:assert/strict";
import { answered, ask, button, calls, chats, log, scenes, soon } from "./window.js";

const scene = scenes();

/** Holds back requests of one kind until they are released. */
const hold = (page, verb) =>
  page.evaluate((verb) => {
    const real = window.stage[verb].bind(window.stage);
    window.held = [];
    window.stage[verb] = async (...given) => {
      await new Promise((go) => window.held?.push(go) ?? go());
      return real(...given);
    };
  }, verb);

const letGo = (page) =>
  page.evaluate(() => {
    const { held } = window;
    window.held = null;
    for (const go of held) go();
  });

scene("a title that is saved late leaves the field of the next one open", {}, async (page) => {
  const title = page.getByRole("textbox", { name: "Chat title" });
  await chats(page).getByText("Sourdough").click();
  await log(page).waitFor();
  await hold(page, "renameChat");
  await page.keyboard.press("F2");
  await title.fill("Bread");
  await chats(page).getByText("A story about a small bird").click();
  await log(page).getByText("The goldcrest weighs").first().waitFor();
  await page.keyboard.press("F2");
  await title.fill("Birds");
  await letGo(page);
  await chats(page).getByText("Bread", { exact: true }).waitFor();
  assert.equal(await title.inputValue(), "Birds");
  await title.press("Enter");
  await chats(page).getByText("Birds", { exact: true }).waitFor();
});

scene(
  "what is counted late has nothing read again in a chat that was left",
  { context: 800, rate: 4000 },
  async (page) => {
    await chats(page).getByText("How does compound interest work?").click();
    await ask(page, "And what if I add $50 every month, for the same ten years, at the end of it?");
    await answered(page);
    await page.evaluate(() => {
      const { status } = window.stage.model;
      const model = { ...status.model, contextLength: 4096 };
      window.stage.model = { status: { state: "ready", model }, error: null };
      window.stage.emit({ type: "model", model: window.stage.model });
      const readAgain = window.stage.readAgain.bind(window.stage);
      window.stage.readAgain = (id) => (window.stage.calls.push(["readAgain", id]), readAgain(id));
    });
    await page.getByLabel(/^Context: .* of 4,096 tokens/).waitFor();
    await hold(page, "contextUsage");
    const again = button(page, "Include them again");
    // Immediately, while the typed text is not counted yet.
    await again.evaluate(async (element) => {
      const box = document.querySelector("textarea[aria-label=Message]");
      box.value = "More";
      box.dispatchEvent(new Event("input", { bubbles: true }));
      await new Promise((resolve) => setTimeout(resolve, 20));
      element.click();
    });
    await soon(async () => assert((await page.evaluate(() => window.held.length)) > 0));
    await chats(page).getByText("A story about a small bird").click();
    await log(page).getByText("The goldcrest weighs").first().waitFor();
    await letGo(page);
    await page.getByLabel(/^Context: .* of 4,096 tokens/).waitFor();
    assert.deepEqual(await calls(page, "readAgain"), []);
    await page.getByRole("heading", { name: "A story about a small bird", level: 1 }).waitFor();
  },
);

scene("an address that is refused late says nothing of the next one", {}, async (page) => {
  await page.keyboard.press("Control+Shift+M");
  const address = page.getByRole("textbox", { name: "Get from an address" });
  await hold(page, "getAddress");
  await address.fill("http://example.org/model.gguf");
  await address.press("Enter");
  await soon(async () => assert.equal(await page.evaluate(() => window.held.length), 1));
  await address.fill("https://example.org/another.gguf");
  await letGo(page);
  // The next response arrives after the late one.
  await address.press("Enter");
  await page.getByText("Goldcrest can verify only files of Hugging Face.").waitFor();
  assert.equal(await page.getByText("An address begins with https://.").count(), 0);
  assert.equal(await address.inputValue(), "https://example.org/another.gguf");
});
