// Find in the open chat: matches, navigation and cost.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { pageTasks, timed } from "./responsive.js";
import { ask, button, chats, ENDLESS, log, message, scenes, soon, Stand } from "./window.js";

const scene = scenes();
let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

const INTEREST = "How does compound interest work?";

const bar = (page) => page.getByRole("search", { name: "Find in this chat" });
const box = (page) => bar(page).getByRole("searchbox", { name: "Find in this chat" });
const words = (page) => bar(page).locator(".words").textContent();

async function open(page, title = INTEREST) {
  if (!(await chats(page).isVisible())) await page.keyboard.press("Control+b");
  await chats(page).getByText(title).click();
  await log(page).getByRole("article").last().waitFor();
}

async function find(page, query, expected) {
  await page.keyboard.press("Control+f");
  await box(page).fill(query);
  if (expected) await soon(async () => assert.equal(await words(page), expected));
}

/** Text of all ranges in a highlight. */
const marked = (page, name) =>
  page.evaluate((name) => [...(CSS.highlights.get(name) ?? [])].map(String), name);

/** Returns true if the current match is visible in the log and in its horizontal scroller. */
const inView = (page) =>
  page.evaluate(() => {
    const [current] = CSS.highlights.get("current-match") ?? [];
    if (!current) return false;
    const { top, bottom, left, right } = current.getBoundingClientRect();
    const view = document.querySelector("[role=log]").getBoundingClientRect();
    const wide = current.startContainer.parentElement.closest("pre, .table");
    const across = wide?.getBoundingClientRect() ?? view;
    return (
      bottom > top &&
      top >= view.top &&
      bottom <= view.bottom &&
      left >= across.left - 1 &&
      right <= across.right + 1
    );
  });

const seen = (page, text) =>
  soon(async () => {
    const current = (await marked(page, "current-match")).map((each) => each.toLowerCase());
    assert.deepEqual(current, [text.toLowerCase()]);
    assert(await inView(page), `${text} is in view`);
  });

/** Number of the message with the current match. */
const messageOfMatch = (page) =>
  page.evaluate(() => {
    const [current] = CSS.highlights.get("current-match") ?? [];
    return Number(current?.startContainer.parentElement.closest("article").ariaPosInSet);
  });

/** Sets the messages of the newest chat, alternately questions and answers. */
const fill = (page, ...texts) =>
  page.evaluate((texts) => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const first = chat.messages[0];
    for (const [at, text] of texts.entries()) {
      const each = chat.messages[at];
      if (each) each.parts = [{ kind: "text", text }];
      else window.stage.library.add(chat, at % 2 ? "assistant" : "user", { text });
    }
    return first.id;
  }, texts);

scene("the mouse opens it in the top bar of a chat", {}, async (page) => {
  const opens = button(page, "Find in this chat");
  assert.equal(await opens.count(), 0, "a new chat has nothing to find");
  await open(page);
  await opens.click();
  await page.keyboard.type("interest");
  assert.equal(await box(page).inputValue(), "interest");
  await page.keyboard.press("Escape");
  assert.equal(await bar(page).count(), 0);
  await page.keyboard.type("Hello");
  assert.equal(await message(page).inputValue(), "Hello", "whoever types writes");
});

scene("words are found across marks, in tables, lists and code", {}, async (page) => {
  await fill(
    page,
    "A question with **stars**",
    [
      "Some **bold** and *other* text\nin two lines.",
      "- an item\n- the last item",
      "| Head | Other |\n|---|---|\n| one cell | two |",
      "```python\nfor each in all:\n    print(each)\n```",
    ].join("\n\n"),
  );
  await open(page);
  for (const [query, shown] of [
    ["BOLD and other text in", "bold and other text\nin"],
    ["last item", "last item"],
    ["one CELL", "one cell"],
    ["all: print(", "all:\n    print("],
    ["**stars**", "**stars**"],
  ]) {
    await find(page, query, "1 of 1");
    await seen(page, shown);
  }
  await find(page, "cell two", "Not found");
  await find(page, "**bold**", "Not found");
  await find(page, "python", "Not found");
});

scene("every match is marked, the current one more, and keys go round", {}, async (page) => {
  await fill(page, "Bird, bird", "A bird and a *bird*.");
  await open(page);
  await find(page, "bird", "1 of 4");
  await seen(page, "Bird");
  await soon(async () => assert.equal((await marked(page, "match")).length, 4));
  await box(page).press("Enter");
  assert.equal(await words(page), "2 of 4");
  await page.keyboard.press("F3");
  await page.keyboard.press("Control+g");
  assert.equal(await words(page), "4 of 4");
  assert.equal(await bar(page).getByRole("status").textContent(), "4 of 4");
  await box(page).press("Enter");
  assert.equal(await words(page), "1 of 4");
  await box(page).press("Shift+Enter");
  await page.keyboard.press("Shift+F3");
  await page.keyboard.press("Control+Shift+G");
  assert.equal(await words(page), "2 of 4");
  await button(page, "Next match").click();
  await button(page, "Previous match").click();
  assert.equal(await words(page), "2 of 4");
  await log(page).click();
  await page.keyboard.press("F3");
  assert.equal(await words(page), "3 of 4", "from anywhere");
});

scene("Escape closes the bar, and the focus goes back", {}, async (page) => {
  await open(page);
  const copy = log(page).getByRole("button", { name: "Copy answer" });
  await copy.focus();
  await find(page, "interest");
  await soon(async () => assert((await marked(page, "match")).length > 2));
  await box(page).press("Escape");
  assert.equal(await bar(page).count(), 0);
  assert(await copy.evaluate((each) => each === document.activeElement));
  assert.deepEqual(await marked(page, "match"), []);
  assert.deepEqual(await marked(page, "current-match"), []);
  await page.keyboard.press("F3");
  assert.equal(await box(page).inputValue(), "interest", "what was looked for is there again");
  await page.waitForTimeout(300);
  assert.deepEqual(await marked(page, "current-match"), [], "nothing has moved yet");
  await box(page).press("Enter");
  await soon(async () => assert(await inView(page)));
});

scene(
  "an answer that is written goes on, and its matches are counted",
  { rate: 60 },
  async (page) => {
    await ask(page, ENDLESS);
    await log(page).getByText("The goldcrest").first().waitFor();
    await find(page, "the", undefined);
    const total = async () => Number(/of (\d+)/.exec(await words(page))?.[1] ?? 0);
    await soon(async () => assert((await total()) > 2));
    const before = await total();
    await seen(page, "the");
    const at = (await words(page)).split(" ")[0];
    await soon(async () => assert((await total()) > before + 5));
    assert.equal((await words(page)).split(" ")[0], at, "the reader stays at the match");
    assert(await inView(page));
    await soon(async () => assert.equal((await marked(page, "match")).length > before + 5, true));
    await box(page).press("Escape");
    assert.equal(await button(page, "Stop").count(), 1, "Escape has closed the bar alone");
  },
);

scene("ends with its chat, and opens in none", {}, async (page) => {
  await page.keyboard.press("Control+f");
  assert.equal(await bar(page).count(), 0, "there is nothing to find in a new chat");
  await open(page);
  await find(page, "interest");
  await open(page, "A story about a small bird");
  await soon(async () => assert.equal(await bar(page).count(), 0));
  assert.deepEqual(await marked(page, "match"), []);
  assert(await message(page).evaluate((each) => each === document.activeElement));
});

scene("thoughts and folded questions are unfolded where it leads there", {}, async (page) => {
  await fill(page, `${"A long paste.\n".repeat(500)}The needle.`, "No such thing.");
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    chat.messages[1].parts.unshift({ kind: "thinking", text: "A needle in the hay." });
  });
  await open(page);
  await find(page, "needle", "1 of 2");
  await seen(page, "needle");
  await box(page).press("Enter");
  await seen(page, "needle");
  assert.equal(await messageOfMatch(page), 2);
});

scene("calls of tools and their results are found, and unfolded", {}, async (page) => {
  await fill(page, "x", "y");
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    chat.messages[1].parts = [
      { kind: "thinking", text: "A needle in the hay." },
      { kind: "text", text: "I look for a *needle*." },
      { kind: "tool-call", id: "1", name: "find_needle", arguments: '{"a": "**needle**"}' },
      { kind: "tool-result", id: "1", text: `${"hay\n".repeat(3000)}the NEEDLE` },
      { kind: "text", text: "There is a needle." },
    ];
  });
  await open(page);
  const call = log(page).getByRole("button", { name: /^find_needle/ });
  await find(page, "needle", "1 of 6");
  await seen(page, "needle");
  for (const [at, shown, opened] of [
    ["2 of 6", "needle", "false"],
    ["3 of 6", "needle", "true"],
    ["4 of 6", "needle", "true"],
    ["5 of 6", "NEEDLE", "true"],
    ["6 of 6", "needle", "true"],
  ]) {
    await box(page).press("Enter");
    await soon(async () => assert.equal(await words(page), at));
    await seen(page, shown);
    assert.equal(await call.getAttribute("aria-expanded"), opened, at);
    // Matches as written, the case included.
    assert.deepEqual(await marked(page, "current-match"), [shown]);
  }
  await soon(async () => assert.equal((await marked(page, "match")).length, 6));
  await find(page, "**needle**", "1 of 1");
  await seen(page, "**needle**");
});

scene("a match in an answer is not taken for one in its thoughts", {}, async (page) => {
  await fill(page, "x", "A bird, and another **Bird**.");
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    chat.messages[1].parts.unshift({ kind: "thinking", text: "One BIRD, they ask." });
  });
  await open(page);
  await find(page, "bird", "1 of 3");
  await seen(page, "bird");
  await page.getByRole("group", { name: "Thinking" }).getByRole("button").click();
  for (const [key, at, shown] of [
    ["Shift+Enter", "3 of 3", "Bird"],
    ["Shift+Enter", "2 of 3", "bird"],
    ["Shift+Enter", "1 of 3", "BIRD"],
    ["Enter", "2 of 3", "bird"],
  ]) {
    await box(page).press(key);
    await soon(async () => {
      assert.equal(await words(page), at);
      assert.deepEqual(await marked(page, "current-match"), [shown]);
    });
  }
});

scene("the keys of an input method stay with it", {}, async (page) => {
  await open(page);
  await find(page, "interest");
  await soon(async () => assert.match(await words(page), /^1 of/u));
  const at = await words(page);
  const press = (init) =>
    box(page).evaluate((box, init) => {
      box.dispatchEvent(new KeyboardEvent("keydown", { ...init, bubbles: true, cancelable: true }));
    }, init);
  await press({ key: "Enter", keyCode: 229 });
  await press({ key: "Enter", isComposing: true });
  await press({ key: "Escape", isComposing: true });
  assert.equal(await words(page), at);
  await press({ key: "Escape" });
  await bar(page).waitFor({ state: "detached" });
});

scene("a wide line of code is scrolled to the match", {}, async (page) => {
  await fill(page, "x", `\`\`\`js\n${"filler(); ".repeat(200)}needle();\n\`\`\``);
  await open(page);
  await find(page, "needle", "1 of 1");
  await seen(page, "needle");
});

scene("words without accents, and text from right to left", {}, async (page) => {
  await fill(page, "Höflich?", "السلام عليكم ورحمة الله\n\nשלום, l’été à Besançon");
  await open(page);
  for (const [query, shown] of [
    ["hoflich", "Höflich"],
    ["عليكم", "عليكم"],
    ["ete a besancon", "été à Besançon"],
  ]) {
    await find(page, query, "1 of 1");
    await seen(page, shown);
  }
});

scene("fits the narrowest window", { width: 420, height: 720 }, async (page) => {
  await open(page);
  await find(page, "interest");
  await soon(async () => assert(await inView(page)));
  for (const each of [
    box(page),
    button(page, "Next match"),
    bar(page).getByRole("button").last(),
  ]) {
    const { x, width } = await each.boundingBox();
    assert(x >= 0 && x + width <= 420, `${x} to ${x + width}`);
  }
  const { width } = await box(page).boundingBox();
  assert(width > 120, `${width} px to write in`);
});

scene("a word deep in a long answer is found, and its neighbours are marked", {}, async (page) => {
  const filler = "A paragraph of **plain** words.\n\n".repeat(2500);
  await fill(page, "x", `${filler}The *needle* lies here.\n\n${filler}`);
  await open(page);
  await find(page, "needle lies", "1 of 1");
  await seen(page, "needle lies");
  await find(page, "paragraph");
  await soon(async () => assert.match(await words(page), /of 5,000$/));
  for (let turn = 0; turn < 3; turn++) await box(page).press("Shift+Enter");
  await seen(page, "paragraph");
  assert((await marked(page, "match")).length <= 5000);
});

timed(
  () => stand,
  "a search through 10,000 messages takes no longer tasks than one through 200",
  async (t) => {
    // Cost of rendering one message on this machine. Machines differ by a factor of three.
    const short = Math.max(...(await searchChat(t, 200)));
    let long = await searchChat(t, 10_000);
    const bound = 1.25 * short + 10;
    // Other test files share the caches. The minimum of several runs is the cost of the search
    // itself.
    if (Math.max(...long) >= bound) {
      const again = await searchChat(t, 10_000);
      long = long.map((each, at) => Math.min(each, again[at]));
    }
    assert(Math.max(...long) < bound, `${long.join(", ")} ms; ${short} ms in a short chat`);
  },
);

/**
 * Runs several searches in a chat. Returns the longest task of each, in milliseconds of processor
 * time.
 */
async function searchChat(t, messages) {
  const tasks = [];
  const page = await stand.page({ messages });
  const needle = 2 * Math.floor(messages / 4) + 1;
  // All messages differ: 1 MB in 10,000 of them.
  const size = await page.evaluate((needle) => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    let sum = 0;
    for (const [at, each] of chat.messages.entries()) {
      const text =
        each.role === "user"
          ? `Question ${at} about birds?`
          : `Answer **${at}**: a *goldcrest* weighs “${at % 9} g”, or so.\n\n- it is number ${at}\n- it sings in a voice so high that most people\n\n\`\`\`js\ncall(${at});\n\`\`\`\n\n| a | b |\n|---|---|\n| row ${at} | $x_{${at}}$ |\n`;
      each.parts = [{ kind: "text", text }];
      sum += text.length;
    }
    chat.messages[needle].parts[0].text += "\n\nOnly here: **need**le.";
    return sum;
  }, needle);
  t.diagnostic(`${messages} messages, ${size} characters`);
  await open(page);
  await page.waitForTimeout(1000);
  await page.keyboard.press("Control+f");
  await page.waitForTimeout(500);
  const measure = async (name, query, expected) => {
    let took = 0;
    const { longest, sum } = await pageTasks(stand, page, async () => {
      took = await page.evaluate(
        async ([query, expected]) => {
          const started = performance.now();
          const box = document.querySelector("[role=search] input");
          box.value = query;
          box.dispatchEvent(new InputEvent("input", { bubbles: true }));
          const words = document.querySelector("[role=search] .words");
          while (!new RegExp(expected).test(words.textContent))
            await new Promise((resolve) => setTimeout(resolve, 5));
          return Math.round(performance.now() - started);
        },
        [query, expected],
      );
      await page.waitForTimeout(1000);
    });
    t.diagnostic(
      `${name}: ${took} ms until counted, ${longest} ms the longest task, ${sum} ms in all`,
    );
    tasks.push(longest);
  };
  const answers = (messages / 2).toLocaleString("en");
  await measure("the first search", "needle", "^1 of 1$");
  await seen(page, "needle");
  assert.equal(await messageOfMatch(page), needle + 1);
  await measure("another word", "goldcrest", ` of ${answers}$`);
  await measure("one character", "e", ` of (?!${answers}$)[\\d,]+$`);
  await measure("no match", "nightingale", "^Not found$");
  if (messages > 7777) {
    await page.getByRole("searchbox", { name: "Find in this chat" }).fill("number 77");
    await soon(async () => assert.match(await words(page), /of 56$/));
    await seen(page, "number 77");
    for (let turn = 0; turn < 3; turn++) {
      const from = await messageOfMatch(page);
      await box(page).press("Enter");
      await soon(async () => assert.notEqual(await messageOfMatch(page), from));
      await seen(page, "number 77");
    }
  }
  assert.deepEqual(page.faults, []);
  await page.context().close();
  return tasks;
}

/**
 * Processor time in milliseconds while an answer is being written for some seconds, with the find
 * bar open or closed.
 */
async function costOfWriting(messages, isOpen) {
  const page = await stand.page({ messages, rate: 100 });
  await open(page);
  await page.waitForTimeout(1000);
  await ask(page, ENDLESS);
  await log(page).getByText("crosses the North Sea").last().waitFor();
  if (isOpen) {
    await find(page, "the");
    // Waits until the search is complete.
    await soon(async () => assert.match(await words(page), / of [\d,]+$/));
  }
  await page.waitForTimeout(2000);
  // Minimum of three runs, since other load only adds to the time.
  const sums = [];
  for (let window = 0; window < 3; window++)
    sums.push((await pageTasks(stand, page, () => page.waitForTimeout(3000))).sum);
  assert.deepEqual(page.faults, []);
  await page.context().close();
  return Math.min(...sums);
}

timed(
  () => stand,
  "the bar costs an answer that is written little, however long the chat is",
  async (t) => {
    const without = await costOfWriting(10_000, false);
    const short = await costOfWriting(20, true);
    const long = await costOfWriting(10_000, true);
    const costs = JSON.stringify({ without, short, long });
    t.diagnostic(costs);
    assert(long < 1.5 * Math.max(short, without) + 100, costs);
  },
);
