// Parts of a message: texts, thinking, calls of tools and their results, in their order.
import assert from "node:assert/strict";
import { ask, button, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();

/** Opens a chat with these fields of each message with this role. */
async function openWith(page, fields, role = "assistant") {
  await page.evaluate(
    ([fields, role]) => {
      for (const { messages } of window.stage.library.chats.values())
        for (const message of messages.filter((each) => each.role === role))
          Object.assign(message, fields);
    },
    [fields, role],
  );
  await chats(page).getByText("Sourdough").click();
  await log(page).getByRole("article").last().waitFor();
}

/** An answer that calls a tool. */
const WEIGHED = [
  { kind: "text", text: "I *weigh* it." },
  { kind: "tool-call", id: "1", name: "weigh", arguments: '{"bird": "<b>wren</b>"}' },
  { kind: "tool-result", id: "1", text: "9 g" },
  { kind: "text", text: "A wren weighs *nine* grams." },
];
const firstAnswer = (page) => log(page).getByRole("article", { name: "Answer" }).first();

/** Emits an event of the answer that is being written. */
const emit = (page, event) =>
  page.evaluate((event) => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const message = chat.messages.at(-1);
    if (event.parts) event.seq = message.seq += 1;
    window.stage.emit({
      ...{ chat: chat.summary.id, message: message.id, tokens: 9, tokensPerSecond: 9 },
      ...event,
    });
  }, event);

scene("calls of tools and their results are shown in their order, folded", {}, async (page) => {
  await openWith(page, { parts: WEIGHED });
  const answer = firstAnswer(page);
  await answer.getByText("A wren weighs nine grams.").waitFor();
  const shown = (await answer.innerText()).replace(/\s+/gu, " ");
  assert.match(shown, /I weigh it\. weigh <b>wren<\/b> 9 g A wren weighs nine grams\./);
  const call = answer.getByText('{"bird": "<b>wren</b>"}');
  assert.equal(await call.isVisible(), false);
  await answer.getByRole("button", { name: /^weigh/ }).click();
  await call.waitFor();
  await answer.getByRole("group", { name: "Result" }).getByText("9 g").waitFor();
});

scene("a message of the user is shown with all of its parts", {}, async (page) => {
  await openWith(page, { parts: WEIGHED }, "user");
  const question = log(page).getByRole("article", { name: "You" }).first();
  const call = question.getByRole("button", { name: /^weigh/ });
  await call.click();
  await question.getByText('{"bird": "<b>wren</b>"}').waitFor();
  await call.click();
  const shown = (await question.innerText()).replace(/\s+/gu, " ");
  assert.match(shown, /I \*?weigh\*? it\. weigh <b>wren<\/b> 9 g A wren weighs \*?nine\*? grams\./);
  await question.getByRole("button", { name: "Edit message" }).click();
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  assert.equal(await editor.inputValue(), "I *weigh* it.\n\nA wren weighs *nine* grams.");
  assert.equal(await call.count(), 1);
});

scene("an opened part stays open when it was scrolled away", { messages: 60 }, async (page) => {
  await page.evaluate((parts) => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    chat.messages[1].parts = parts;
  }, WEIGHED);
  await chats(page).getByText("How does compound interest work?").click();
  await log(page).getByRole("article").last().hover();
  const call = log(page).getByRole("button", { name: /^weigh/ });
  const scroll = (pixels, isThere) =>
    soon(async () => {
      await page.mouse.wheel(0, pixels);
      assert.equal(await call.isVisible(), isThere);
    });
  await scroll(-100_000, true);
  await call.click();
  const result = log(page).getByRole("group", { name: "Result" }).getByText("9 g");
  await result.waitFor();
  // A message with the focus stays rendered.
  await message(page).focus();
  await scroll(100_000, false);
  await scroll(-100_000, true);
  assert.equal(await result.isVisible(), true);
});

scene("the first of several thoughts has the time of all", { rate: 400 }, async (page) => {
  const parts = [
    { kind: "thinking", text: "What does it weigh?" },
    ...WEIGHED,
    { kind: "thinking", text: "Is that all?" },
    { kind: "text", text: "That is all." },
  ];
  await openWith(page, { parts, thinkingMs: 12_300 });
  const thoughts = firstAnswer(page).getByRole("group", { name: "Thinking" });
  assert.deepEqual(await thoughts.allInnerTexts(), ["Thought for 12 s", "Thought"]);
  await thoughts.last().getByRole("button").click();
  await thoughts.last().getByText("Is that all?").waitFor();
  assert.equal(await thoughts.first().getByText("What does it weigh?").count(), 0);
});

scene("the clock runs during a second thinking", { pause: 1 }, async (page) => {
  await ask(page, "What is Goldcrest?");
  await log(page)
    .getByText(/^Thinking… \d+ s$/)
    .waitFor();
  await emit(page, { type: "delta", parts: WEIGHED.slice(0, 3) });
  const thoughts = log(page).getByRole("group", { name: "Thinking" });
  const [first, second] = [thoughts.first(), thoughts.last()];
  await first.getByText(/^Thought (briefly|for \d+ s)$/).waitFor();
  await log(page).getByText("Waiting", { exact: true }).waitFor();
  assert.equal(await button(page, "Answer now").count(), 0);
  await emit(page, { type: "stage", stage: { name: "thinking" } });
  await second.getByText("Thinking…", { exact: true }).waitFor();
  assert.equal(await log(page).getByText("Waiting", { exact: true }).count(), 0);
  const before = await first.innerText();
  await emit(page, { type: "delta", parts: [{ kind: "thinking", text: "So it is." }] });
  await second.getByText("So it is.").waitFor();
  await soon(async () => assert.notEqual(await first.innerText(), before));
  await second.getByRole("button", { name: "Answer now" }).waitFor();
  await emit(page, { type: "delta", parts: [{ kind: "text", text: "Nine grams." }] });
  await second.getByText("Thought", { exact: true }).waitFor();
});

scene("while a part grows, the parts before it are not drawn again", { pause: 1 }, async (page) => {
  await ask(page, "What is Goldcrest?");
  await log(page)
    .getByText(/^Thinking… \d+ s$/)
    .waitFor();
  const text = (text) => ({ type: "delta", parts: [{ kind: "text", text }] });
  await emit(page, { type: "delta", parts: WEIGHED });
  await emit(page, text("\n\n- one\n- two\n\nThe end"));
  await firstAnswer(page).getByText("The end").waitFor();
  await page.evaluate(() => {
    window.changed = [];
    new MutationObserver((records) => {
      for (const { target } of records) {
        const element = target instanceof Element ? target : target.parentElement;
        const part = element.closest("[data-part]")?.dataset.part;
        if (part) window.changed.push([part, element.textContent]);
      }
    }).observe(document.querySelector("[role=log]"), {
      ...{ childList: true, subtree: true, characterData: true },
    });
  });
  for (const word of [" of", " the", " story."]) await emit(page, text(word));
  await firstAnswer(page).getByText("The end of the story.").waitFor();
  const changed = await page.evaluate(() => window.changed);
  assert(changed.length > 0);
  // Thinking, text, call, result, and the text that grows: only its last paragraph changes.
  for (const [part, shown] of changed) {
    assert.equal(part, "4");
    assert.match(shown, /^The end/);
  }
});

for (const role of ["system", "tool"])
  scene(`a ${role} message is not taken for an answer`, {}, async (page) => {
    await openWith(page, { role });
    await button(page, "Copy message").last().waitFor();
    assert.equal(await log(page).getByRole("toolbar", { name: "Answer actions" }).count(), 0);
    for (const name of ["Copy answer", "Edit answer", "Regenerate"])
      assert.equal(await button(page, name).count(), 0, name);
  });
