// The search over all chats: results, their display, and opening a hit.
import assert from "node:assert/strict";
import { button, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();

const box = (page) => page.getByRole("searchbox", { name: "Search all chats" });
const hits = (page) => page.getByRole("list", { name: "Search results" });

async function search(page, words) {
  await box(page).fill(words);
  await soon(async () => assert((await hits(page).getByRole("button").count()) > 0));
}

/** Highlighted text in the conversation. */
const marked = (page) =>
  page.evaluate(() =>
    ["found", "found-fading", "found-faint"].flatMap((name) =>
      [...(CSS.highlights.get(name) ?? [])].map(String),
    ),
  );

/** Returns true if the first highlight is in view. */
const inView = (page) =>
  page.evaluate(() => {
    const [first] = CSS.highlights.get("found") ?? [];
    if (!first) return false;
    const { top, bottom } = first.getBoundingClientRect();
    const view = document.querySelector("[role=log]").getBoundingClientRect();
    return top >= view.top && bottom <= view.bottom && bottom > top;
  });

for (const [words, title] of [
  ["spruc hedge", "A story about a small bird"],
  ["prinz", null],
  ["ourdoug", "Sourdough that does not rise"],
  ['"north sea"', "A story about a small bird"],
  ['"sea north"', null],
  ["hoflich", "Briefe auf Deutsch höflich beenden"],
])
  scene(`the search for ${words} ${title ? "finds" : "finds nothing"}`, {}, async (page) => {
    await box(page).fill(words);
    if (title) await hits(page).getByText(title).first().waitFor();
    else await page.getByText("Nothing found").waitFor();
  });

scene(
  "hits are grouped by chat, with its date, and repeat nothing",
  { scene: "long" },
  async (page) => {
    await search(page, "sourdough");
    const texts = await hits(page).getByRole("button").allTextContents();
    assert.equal(texts.filter((text) => text.includes("Sourdough that does not rise")).length, 1);
    assert.match(texts[0], /Sourdough that does not rise.*\d{1,2} \w{3}/s);
    assert.equal(texts.filter((text) => text.includes("My sourdough")).length, 3, texts.join("\n"));
    const more = hits(page).getByRole("button", { name: /more in this chat/ });
    await more.click();
    assert.equal(await more.count(), 0);
    assert((await hits(page).getByRole("button").count()) > 10);
  },
);

scene("a snippet shows neither Markdown nor TeX", {}, async (page) => {
  for (const words of ["years", "double", "difference", "inflation", "qquad"]) {
    await box(page).fill(words);
    await soon(async () =>
      assert.equal(await page.evaluate(() => window.stage !== undefined), true),
    );
    await page.waitForTimeout(250);
    // Two asterisks between spaces are an operator in code.
    for (const text of await hits(page).locator(".snippet").allTextContents())
      assert.doesNotMatch(text, /\||---|\*\*\S|\S\*\*|\$\$|\\[a-z]|^#|`/u, text);
  }
});

scene("a hit leads to its word, and marks it for a while", { scene: "long" }, async (page) => {
  await search(page, "derivation");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert(await inView(page)));
  assert.deepEqual([...new Set(await marked(page))], ["derivation"]);
  assert.equal(await page.locator("[aria-current=true]").count(), 1, "the hit is marked");
  await message(page).waitFor();
  await soon(async () => assert.deepEqual(await marked(page), []));
});

scene("a word deep in a long answer is found and shown", {}, async (page) => {
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const answer = chat.messages.at(-1);
    const filler = "A paragraph of **plain** words.\n\n".repeat(2500);
    const text = `${filler}The *needle* lies here.\n\n${filler}`;
    answer.parts = [{ kind: "text", text }];
  });
  await search(page, "eedl lies");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert(await inView(page)));
  assert((await marked(page)).includes("eedl"));
});

scene("the language of code is found above it", {}, async (page) => {
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const text = "Like this:\n\n```python\nprint(1)\n```";
    chat.messages[1].parts = [{ kind: "text", text }];
  });
  await search(page, "python");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert.deepEqual(await marked(page), ["Python"]));
});

scene("a word in a folded message and one in the thinking are unfolded", {}, async (page) => {
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const [question, answer] = chat.messages;
    const text = `${"A long paste.\n".repeat(500)}The needle.`;
    question.parts = [{ kind: "text", text }];
    answer.parts = [{ kind: "thinking", text: "Regulus ponders." }, answer.parts.at(-1)];
    const hit = {
      message: answer.id,
      role: "assistant",
      kind: "thinking",
      snippet: "\uE000Regulus\uE001",
      at: 0,
    };
    const found = {
      chat: chat.summary.id,
      title: "x",
      inTitle: false,
      at: 0,
      hits: [hit],
      count: 1,
    };
    const find = window.stage.search.bind(window.stage);
    window.stage.search = async (query) =>
      query === "regulus" ? { chats: [found], more: false, indexing: false } : find(query);
  });
  await search(page, "needle");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert(await inView(page)));
  await search(page, "regulus");
  // Not a hit of the previous search.
  await hits(page).getByRole("button").filter({ hasText: "Regulus" }).click();
  await soon(async () => assert.deepEqual(await marked(page), ["Regulus"]));
  assert(await inView(page));
});

for (const [words, label, shown, mark] of [
  ["encyclo", "Tool call", 'encyclopedia {"a_b_": "*regulus*"}', "encyclo"],
  ["regulus", "Tool call", 'encyclopedia {"a_b_": "*regulus*"}', "regulus"],
  ["firecrest", "Result", "The firecrest is a *relative*.", "firecrest"],
])
  scene(`what a tool reads or returns is found and unfolded: ${words}`, {}, async (page) => {
    await page.evaluate(() => {
      const [chat] = [...window.stage.library.chats.values()].slice(-1);
      chat.messages[1].parts = [
        { kind: "text", text: "I look it up." },
        { kind: "tool-call", id: "1", name: "encyclopedia", arguments: '{"a_b_": "*regulus*"}' },
        { kind: "tool-result", id: "1", text: "The firecrest is a *relative*." },
        { kind: "text", text: "It is related." },
      ];
    });
    await search(page, words);
    const hit = hits(page).getByRole("button").filter({ hasText: shown });
    await hit.getByText(label, { exact: true }).waitFor();
    await hit.click();
    await soon(async () => assert.deepEqual(await marked(page), [mark]));
    assert(await inView(page));
    await log(page).getByRole("button", { expanded: true }).waitFor();
  });

scene("whoever scrolls after a hit has the view", { scene: "long" }, async (page) => {
  await search(page, "derivation");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert(await inView(page)));
  await page.mouse.move(700, 300);
  await page.mouse.wheel(0, -2000);
  await soon(async () => assert(!(await inView(page))));
  await page.waitForTimeout(300);
  assert(!(await inView(page)));
});

scene("Escape in the composer clears the search", {}, async (page) => {
  await search(page, "bird");
  await message(page).focus();
  await page.keyboard.press("Escape");
  await chats(page).waitFor();
  assert.equal(await box(page).inputValue(), "");
});

scene("the ring of the first hit is not cut", {}, async (page) => {
  await search(page, "bird");
  await box(page).press("ArrowDown");
  const ring = await page.evaluate(() => {
    const hit = document.activeElement;
    const style = getComputedStyle(hit);
    const { top } = hit.getBoundingClientRect();
    const scroller = hit.closest(".scroll").getBoundingClientRect();
    return top - parseFloat(style.outlineOffset) - parseFloat(style.outlineWidth) - scroller.top;
  });
  assert(ring >= 0, `${ring} px of it`);
  await page.keyboard.press("ArrowUp");
  assert(await box(page).evaluate((input) => input === document.activeElement));
  await button(page, "Clear search").click();
  assert.equal(await log(page).count(), 0);
});

scene(
  "the search takes the cursor when it is asked for, and not when it is drawn again",
  {},
  async (page) => {
    await page.keyboard.press("Control+Shift+f");
    await soon(async () => assert(await box(page).evaluate((it) => it === document.activeElement)));
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+b");
    await box(page).waitFor({ state: "detached" });
    await page.keyboard.press("Control+b");
    await box(page).waitFor();
    await page.keyboard.type("where");
    assert.equal(await message(page).inputValue(), "where");
    // Opens the sidebar first if it is hidden.
    await page.keyboard.press("Control+b");
    await page.keyboard.press("Control+Shift+f");
    await soon(async () => assert(await box(page).evaluate((it) => it === document.activeElement)));
  },
);

scene("a dialog takes the marks of what was found away", { scene: "long" }, async (page) => {
  await search(page, "derivation");
  await hits(page).getByRole("button").first().click();
  await soon(async () => assert((await marked(page)).length > 0));
  await page.keyboard.press("Control+,");
  await page.getByRole("dialog", { name: "Settings" }).waitFor();
  await soon(async () => assert.deepEqual(await marked(page), []));
});
