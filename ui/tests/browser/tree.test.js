// The message tree, and the ways to start or continue an answer.
import assert from "node:assert/strict";
import {
  answered,
  ask,
  button,
  calls,
  chats,
  log,
  message,
  regenerate,
  resume,
  scenes,
  soon,
} from "./window.js";

const scene = scenes();
const answer = (page) => log(page).getByRole("article", { name: "Answer" }).last();
const menuitem = (page, name) => page.getByRole("menuitem", { name, exact: true });

async function asked(page, text = "Tell me a story") {
  await ask(page, text);
  await answered(page);
}

async function more(page, name) {
  await answer(page).getByRole("button", { name: "More" }).click();
  await menuitem(page, name).click();
}

scene("an answer is made shorter, and its details say so", { rate: 4000 }, async (page) => {
  await asked(page);
  await regenerate(page, "Shorter");
  await page.getByText("2/2").waitFor();
  await answered(page);
  const [, , thinking, length] = (await calls(page, "regenerate"))[0];
  assert.deepEqual([thinking, length], [true, "shorter"]);
  await page.getByRole("button", { name: /tokens\/s/ }).click();
  await page.getByText("A shorter answer").waitFor();
  await regenerate(page, "Without thinking");
  await page.getByText("3/3").waitFor();
  assert.deepEqual((await calls(page, "regenerate"))[1].slice(2), [false, null]);
});

scene(
  "the keyboard turns the versions, and stays at their buttons",
  { rate: 4000 },
  async (page) => {
    await asked(page);
    for (const shown of ["2/2", "3/3"]) {
      await regenerate(page);
      await page.getByText(shown).waitFor();
      await answered(page);
    }
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    await button(page, "Previous version").focus();
    await page.keyboard.press("Enter");
    await page.getByText("2/3").waitFor();
    await page.getByRole("status").getByText("Version 2 of 3").waitFor({ state: "attached" });
    await soon(async () => assert.equal(await focused(), "Previous version"));
    await page.keyboard.press("Enter");
    await page.getByText("1/3").waitFor();
    await soon(async () => assert.equal(await focused(), "Next version"));
    await page.keyboard.press("Enter");
    await page.getByText("2/3").waitFor();
    await soon(async () => assert.equal(await focused(), "Next version"));
  },
);

scene("the keyboard goes through the ways to answer again", { rate: 4000 }, async (page) => {
  await asked(page);
  await button(page, "Regenerate").focus();
  await page.keyboard.press("Enter");
  const focused = () =>
    page.evaluate(() => document.activeElement?.querySelector(".label")?.textContent);
  await soon(async () => assert.equal(await focused(), "Regenerate"));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "Longer");
  await page.keyboard.press("Enter");
  await page.getByText("2/2").waitFor();
  assert.equal((await calls(page, "regenerate"))[0][3], "longer");
  await answered(page);
  await page.keyboard.press("Control+r");
  await page.getByText("3/3").waitFor();
});

scene(
  "a complete answer goes on, and Ctrl+Z gives it back what it had",
  { rate: 4000 },
  async (page) => {
    await asked(page);
    const before = await answer(page).locator(".answer").innerText();
    await more(page, "Continue");
    await log(page).getByText("And so it goes on").waitFor();
    await answered(page);
    await log(page).focus();
    await page.keyboard.press("Control+z");
    await page.getByText("Undone: continued an answer").waitFor();
    assert.equal(await answer(page).locator(".answer").innerText(), before);
  },
);

scene("a message is deleted with what follows it, and comes back", { rate: 4000 }, async (page) => {
  await asked(page);
  await asked(page, "And another");
  const articles = log(page).getByRole("article");
  assert.equal(await articles.count(), 4);
  await articles.nth(2).getByRole("button", { name: "More" }).click();
  await menuitem(page, "Delete message and what follows").click();
  await soon(async () => assert.equal(await articles.count(), 2));
  await button(page, "Undo").click();
  await soon(async () => assert.equal(await articles.count(), 4));
  // A key without modifiers deletes nothing.
  await button(page, "Copy answer").last().focus();
  await page.keyboard.press("Delete");
  await page.keyboard.press("Backspace");
  assert.equal(await articles.count(), 4);
  await button(page, "Copy answer").last().focus();
  await page.keyboard.press("Control+Shift+Backspace");
  await soon(async () => assert.equal(await articles.count(), 3));
  await page.getByText("Deleted the answer").waitFor();
  await button(page, "Answer").click();
  await soon(async () => assert.equal(await articles.count(), 4));
  await answered(page);
});

scene(
  "a deleted message comes back from the bin, by the keyboard",
  { rate: 4000 },
  async (page) => {
    await asked(page);
    await asked(page, "And a wren?");
    await button(page, "Copy answer").last().focus();
    await page.keyboard.press("Control+Shift+Backspace");
    await page.getByText("Deleted the answer").waitFor();
    await button(page, "Bin").click();
    const deleted = page.getByRole("list", { name: "Deleted messages" });
    await deleted.getByText("Tell me a story,").waitFor();
    await deleted.getByRole("button", { name: "Restore" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("Restored an answer").waitFor();
    await deleted.waitFor({ state: "detached" });
    assert.equal(await log(page).getByRole("article", { name: "Answer" }).count(), 2);
    await message(page).focus();
    await page.keyboard.press("Control+z");
    await deleted.getByRole("button", { name: "Restore" }).waitFor();
  },
);

scene(
  "the first message is deleted, and the chat goes on from nothing",
  { rate: 4000 },
  async (page) => {
    await asked(page);
    const articles = log(page).getByRole("article");
    await articles.first().hover();
    await articles.first().getByRole("button", { name: "More" }).click();
    await menuitem(page, "Delete message and what follows").click();
    await articles.first().waitFor({ state: "detached" });
    await asked(page, "Something else");
    assert.equal(await articles.count(), 2);
    assert.equal(await chats(page).getByText("Tell me a story").count(), 1);
  },
);

scene("a branch becomes a chat of its own", { rate: 4000 }, async (page) => {
  await asked(page);
  await asked(page, "And another");
  const articles = log(page).getByRole("article");
  await articles.nth(1).getByRole("button", { name: "More" }).click();
  await menuitem(page, "New chat from here").click();
  await chats(page).getByText("Tell me a story (copy)").waitFor();
  await soon(async () => assert.equal(await articles.count(), 2));
  await log(page).focus();
  await page.keyboard.press("Control+z");
  await soon(async () =>
    assert.equal(await chats(page).getByText("Tell me a story (copy)").count(), 0),
  );
});

scene("“Answer now” ends the thinking", { pause: 8 }, async (page) => {
  await ask(page, "Tell me a story");
  const now = button(page, "Answer now");
  await now.click();
  assert.equal((await calls(page, "answerNow")).length, 1);
  await resume(page);
  await now.waitFor({ state: "detached" });
  await answered(page);
  await page.getByRole("button", { name: /tokens\/s/ }).click();
  await page.getByText("Ended by “Answer now”").waitFor();
});

scene(
  "Ctrl+Enter in the empty box is “Answer now” while the model thinks",
  { pause: 8 },
  async (page) => {
    await ask(page, "Tell me a story");
    await button(page, "Answer now").waitFor();
    await message(page).fill("more");
    await message(page).press("Control+Enter");
    assert.equal((await calls(page, "answerNow")).length, 0);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("answer now");
    await page.getByRole("option", { name: /^Answer now, while/ }).click();
    await soon(async () => assert.equal((await calls(page, "answerNow")).length, 1));
    await message(page).fill("");
    await message(page).press("Control+Enter");
    await soon(async () => assert.equal((await calls(page, "answerNow")).length, 2));
  },
);

scene("what switching the mode costs is said before it is sent", { rate: 4000 }, async (page) => {
  await asked(page);
  const note = page.getByText("the model rereads this chat first");
  assert.equal(await note.count(), 0);
  await button(page, "Thinking").last().click();
  await note.waitFor();
  assert.match(await note.innerText(), /thinking off, .*: (about|[\d,]+ tokens)/);
  await button(page, "Thinking").last().click();
  await note.waitFor({ state: "detached" });
});

scene("a waiting message is sent at once in the answer's place", { rate: 20 }, async (page) => {
  await ask(page, "Tell me a story");
  await button(page, "Stop").waitFor();
  await message(page).fill("Rather a poem");
  await message(page).press("Enter");
  await button(page, "Send now").click();
  await log(page).getByText("Rather a poem").waitFor();
  await log(page).getByText("Stopped.").first().waitFor();
  assert.equal(await page.getByRole("list", { name: "Waiting messages" }).count(), 0);
});
