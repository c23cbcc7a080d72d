// Calls of tools: consent, states and results, and the tools of a chat.
import assert from "node:assert/strict";
import { answered, ask, button, calls, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();

const card = (page, title) => log(page).getByRole("group", { name: `${title} asks to run` });
const consents = async (page) =>
  (await calls(page, "answerCall")).map(([, , , consent]) => consent);

scene("a pure tool runs without asking and shows its result in one line", {}, async (page) => {
  await ask(page, "Tools: calculate");
  await answered(page);
  const call = log(page).getByRole("group", { name: "Calculator" });
  const shown = (await call.innerText()).replace(/\s+/gu, " ");
  assert.equal(shown, "Calculator 12 * 3 36");
  await call.getByRole("button").click();
  await call.getByText('"expression": "12 * 3"').waitFor();
  await call.getByText("Built in").waitFor();
  await call.getByText("calculate", { exact: true }).waitFor();
  await call.getByRole("button").first().click();
  assert.equal(await call.getByText("Built in").count(), 0);
});

scene("a tool that reads chats asks, and is allowed once", {}, async (page) => {
  await ask(page, "Tools: search");
  const asking = card(page, "Search in chats");
  await asking.getByText("It reads your chats.").waitFor();
  await asking.getByText('"query": "goldcrest"').waitFor();
  assert.deepEqual(await asking.getByRole("button").allInnerTexts(), [
    "Allow once",
    "Always in this chat",
    "Always",
    "Deny…",
  ]);
  await button(page, "Allow once: Search in chats").click();
  await answered(page);
  assert.deepEqual(await consents(page), [{ kind: "once" }]);
  await ask(page, "Tools: search");
  await asking.waitFor();
});

scene("a tool that is always allowed in this chat asks no more in it", {}, async (page) => {
  await ask(page, "Tools: search");
  await button(page, "Always in this chat: Search in chats").click();
  await answered(page);
  await ask(page, "Tools: search");
  await answered(page);
  assert.deepEqual(await consents(page), [{ kind: "in-chat" }]);
  await button(page, "New chat").click();
  await ask(page, "Tools: search");
  await card(page, "Search in chats").waitFor();
});

scene("a tool that is always allowed is listed in the settings", {}, async (page) => {
  await ask(page, "Tools: search");
  await button(page, "Always: Search in chats").click();
  await answered(page);
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "Tools" }).click();
  const list = page.getByRole("list", { name: "Tools that run without asking" });
  await list.getByText("Search in chats").waitFor();
  await button(page, "Ask again for “Search in chats”").click();
  await page.getByText("Every tool asks, except those that only compute.").waitFor();
  await soon(async () => {
    const [, saved] = (await calls(page, "saveSettings")).at(-1);
    assert.deepEqual(saved.allowedTools, []);
  });
});

scene("a call is denied with a word to the model", {}, async (page) => {
  await ask(page, "Tools: write");
  await card(page, "Write file").getByText("It reads files and may change things.").waitFor();
  await button(page, "Deny Write file…").click();
  const word = page.getByRole("textbox", { name: "A word to the model" });
  await soon(async () =>
    assert.equal(await word.evaluate((it) => it === document.activeElement), true),
  );
  await word.press("Escape");
  await button(page, "Deny Write file…").click();
  await word.fill("Use another folder.");
  await word.press("Enter");
  await answered(page);
  assert.deepEqual(await consents(page), [{ kind: "denied", reason: "Use another folder." }]);
  const call = log(page).getByRole("group", { name: "Write file" });
  await call.getByText("not allowed").waitFor();
  await call.getByRole("button").click();
  await call.getByText("The user did not allow this call. Use another folder.").waitFor();
});

scene("a call with content from outside can be allowed only once", {}, async (page) => {
  await ask(page, "Tools: forecast");
  const asking = card(page, "Forecast");
  await asking.getByText(/It may use the network\. This chat has content from outside/).waitFor();
  assert.deepEqual(await asking.getByRole("button").allInnerTexts(), ["Allow once", "Deny…"]);
  await button(page, "Allow once: Forecast").click();
  await answered(page);
  const call = log(page).getByRole("group", { name: "Forecast" });
  await call.getByRole("button").click();
  // The result is never rendered as HTML or Markdown.
  await call
    .locator("pre")
    .getByText("**Snow**, −4 °C, wind from the north. <b>Not bold</b>")
    .waitFor();
  await call.getByText("weather", { exact: true }).last().waitFor();
});

scene("Enter allows nothing by itself", {}, async (page) => {
  await message(page).fill("Tools: search");
  await message(page).press("Enter");
  await card(page, "Search in chats").waitFor();
  assert.equal(await message(page).evaluate((it) => it === document.activeElement), true);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Control+Enter");
  await message(page).fill("And then?");
  await page.keyboard.press("Enter");
  await page.getByText("And then?").waitFor();
  await page.keyboard.press("Control+Shift+A");
  await soon(async () =>
    assert.equal(
      await card(page, "Search in chats").evaluate((it) => it === document.activeElement),
      true,
    ),
  );
  await page.keyboard.press("Enter");
  await page.keyboard.press("Space");
  assert.deepEqual(await consents(page), []);
});

scene("a call is allowed by the keyboard alone", {}, async (page) => {
  await message(page).fill("Tools: search");
  await page.keyboard.press("Enter");
  const asking = card(page, "Search in chats");
  await asking.waitFor();
  await page.keyboard.press("Control+Shift+A");
  await soon(async () =>
    assert.equal(await asking.evaluate((it) => it === document.activeElement), true),
  );
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  for (let stops = 0; (await focused()) !== "Allow once: Search in chats"; stops++) {
    assert(stops < 5, "it is among the next stops");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Enter");
  await answered(page);
  assert.equal((await consents(page)).length, 1);
});

scene("a screen reader hears that a tool asks to run", {}, async (page) => {
  await ask(page, "Tools: search");
  await page.getByRole("status").getByText("Search in chats asks to run").waitFor();
});

scene("a running call shows its time, and is not run after a stop", { pause: 1 }, async (page) => {
  await ask(page, "Tools: calculate, search");
  const running = log(page).getByRole("button", { name: /Running Calculator…/ });
  await running.getByText(/^[1-9] s$/).waitFor();
  await log(page).getByRole("group", { name: "Search in chats" }).getByText("waits").waitFor();
  await button(page, "Stop").click();
  await answered(page);
  const outcomes = log(page).getByText("not run", { exact: true });
  assert.equal(await outcomes.count(), 2);
});

scene(
  "a list of objects is a table, other JSON is indented, a failure is red",
  {},
  async (page) => {
    await ask(page, "Tools: search, files, divide");
    await button(page, "Allow once: Search in chats").click();
    await button(page, "Allow once: Read file").click();
    await answered(page);
    const call = (name) => log(page).getByRole("group", { name, exact: true });
    await call("Search in chats").getByRole("button").click();
    const table = call("Search in chats").getByRole("table");
    assert.deepEqual(await table.getByRole("columnheader").allInnerTexts(), [
      "title",
      "date",
      "matches",
    ]);
    await call("Read file").getByRole("button").first().click();
    const text = call("Read file").getByRole("group", { name: "Result" });
    await text
      .getByText('{"name": "note-1.md", "tags": ["bird", "field"], "size": {"bytes": 812}}')
      .waitFor();
    const height = async () => (await text.boundingBox()).height;
    const folded = await height();
    await text.getByRole("button", { name: /^Show all [\d,]+ characters$/ }).click();
    await soon(async () => assert((await height()) > folded * 2));
    await text.getByRole("button", { name: "Show less" }).click();
    await call("Calculator").getByText("failed").waitFor();
    await call("Calculator")
      .getByText("Division by zero at character 4. Check the divisor.")
      .waitFor();
  },
);

scene("a program is shown as code", {}, async (page) => {
  await ask(page, "Tools: python");
  await answered(page);
  const call = log(page).getByRole("group", { name: "Python" });
  await call.getByRole("button").first().click();
  await call.getByRole("button", { name: "Copy code" }).waitFor();
  await call.locator("figure.code").getByText("def area(radius: float) -> float:").waitFor();
});

scene("a match in a result unfolds it and is marked", {}, async (page) => {
  await ask(page, "Tools: search, files");
  await button(page, "Allow once: Search in chats").click();
  await button(page, "Allow once: Read file").click();
  await answered(page);
  const current = () =>
    page.evaluate(() => [...(CSS.highlights.get("current-match") ?? [])].map(String));
  await page.keyboard.press("Control+f");
  for (const words of ["Lofoten", "note-37.md", "search_chats"]) {
    await page.getByRole("searchbox", { name: "Find in this chat" }).fill(words);
    await soon(async () => assert.deepEqual(await current(), [words]));
  }
});

scene("names cannot turn the direction of the text", {}, async (page) => {
  await page.evaluate(() => {
    const [first, ...others] = window.stage.toolList;
    window.stage.toolList = [{ ...first, title: "Cal\u202eculator\n\u0007" }, ...others];
    window.stage.emit({ type: "toolsChanged" });
  });
  await ask(page, "Tools: calculate");
  await answered(page);
  await log(page).getByRole("group", { name: "Calculator \uFFFD" }).waitFor();
});

scene("the tools of a chat are chosen beside thinking", {}, async (page) => {
  await button(page, "Tools: 0 on").click();
  const popover = page.getByRole("dialog", { name: "Tools" });
  assert.deepEqual(await popover.getByRole("heading", { level: 3 }).allInnerTexts(), [
    "Built in",
    "files",
    "weather",
  ]);
  await popover.getByRole("switch", { name: "Calculator" }).click();
  await popover.getByRole("switch", { name: "Python" }).click();
  await button(page, "Tools: 2 on").waitFor();
  const [, chat, chosen] = (await calls(page, "choosePreset")).at(-1);
  assert.equal(chat, null);
  assert.deepEqual(chosen, {
    preset: null,
    instructions: "",
    tools: ["calculate", "run_python"],
  });
  await page.keyboard.press("Escape");
  await popover.waitFor({ state: "hidden" });
  const opener = button(page, "Tools: 2 on");
  await soon(async () =>
    assert.equal(await opener.evaluate((it) => it === document.activeElement), true),
  );
  await ask(page, "Hello");
  await answered(page);
  await button(page, "Tools: 2 on").waitFor();
  await button(page, "New chat").click();
  await button(page, "Tools: 0 on").waitFor();
});

scene("the choice of tools keeps the preset and the instructions", {}, async (page) => {
  await page.keyboard.press("Control+Shift+p");
  await page.getByRole("button", { name: /^Coder/ }).click();
  await page.getByRole("textbox", { name: "Instructions for this chat" }).fill("Be brief.");
  await page.keyboard.press("Escape");
  await message(page).fill("/tools");
  await page.keyboard.press("Enter");
  await page.getByRole("switch", { name: "Calculator" }).click();
  await soon(async () => {
    const [, , chosen] = (await calls(page, "choosePreset")).at(-1);
    assert.deepEqual(chosen, { preset: 1, instructions: "Be brief.", tools: ["calculate"] });
  });
  await button(page, "As in settings").click();
  await button(page, "Tools: 0 on").waitFor();
});

scene(
  "the small model has no tools, and the button says so",
  { scene: "bundledModel" },
  async (page) => {
    const tools = button(page, "Tools");
    assert.equal(await tools.getAttribute("aria-disabled"), "true");
    await tools.click({ force: true });
    assert.equal(await page.getByRole("dialog", { name: "Tools" }).count(), 0);
    await message(page).fill("/tools");
    await page.keyboard.press("Enter");
    await page
      .getByRole("status")
      .getByText(/The small model that comes with Goldcrest/)
      .waitFor();
  },
);

scene("a call that asks in another chat is announced, and can be shown", {}, async (page) => {
  await ask(page, "Tools: search");
  await card(page, "Search in chats").waitFor();
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    window.call = { type: "called", chat: chat.summary.id, message: chat.messages.at(-1) };
  });
  await button(page, "New chat").click();
  await page.evaluate(() => window.stage.emit(window.call));
  await page.getByText("Search in chats asks to run in “Tools: search”").waitFor();
  await button(page, "Show").click();
  await card(page, "Search in chats").waitFor();
});

scene("a call without a result was not run if the app was closed", {}, async (page) => {
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    Object.assign(chat.messages[1], {
      state: "interrupted",
      parts: [
        { kind: "text", text: "I look it up." },
        { kind: "tool-call", id: "1", name: "search_chats", arguments: '{"query": "wren"}' },
      ],
    });
  });
  await chats(page).getByText("How does compound interest work?").click();
  const call = log(page).getByRole("group", { name: "Search in chats" });
  await call.getByText("not run").waitFor();
  await button(page, "Continue").waitFor();
  await call.getByRole("button").click();
  assert.equal(await call.getByRole("group", { name: "Result" }).count(), 0);
});

scene("tools and their results have rows in the context card", {}, async (page) => {
  await ask(page, "Tools: search");
  await button(page, "Always: Search in chats").click();
  await answered(page);
  await button(page, "Tools: 0 on").click();
  await page.getByRole("switch", { name: "Calculator" }).click();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: /^Context/ }).click();
  const card = page.getByRole("dialog", { name: "Context" });
  await card.getByRole("row", { name: /^Tools 90/ }).waitFor();
  await card.getByRole("row", { name: /^Results of tools \d+/ }).waitFor();
});

scene("a preset has tools of its own", {}, async (page) => {
  await page.keyboard.press("Control+k");
  await page.keyboard.type("Manage presets");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Presets" });
  const modes = dialog.getByRole("radiogroup", { name: "Tools" });
  await modes.getByRole("radio", { name: "These" }).check();
  await dialog.getByRole("switch", { name: "Python" }).click();
  await soon(async () => {
    const [, , preset] = (await calls(page, "savePreset")).at(-1);
    assert.deepEqual(preset.tools, ["run_python"]);
  });
  await modes.getByRole("radio", { name: "As in settings" }).check();
  await soon(async () => {
    const [, , preset] = (await calls(page, "savePreset")).at(-1);
    assert.equal(preset.tools, null);
  });
});
