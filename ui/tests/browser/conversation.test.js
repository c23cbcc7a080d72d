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
  resume,
  scenes,
  soon,
  regenerate,
} from "./window.js";

const scene = scenes();

scene("a message is sent by Enter, answered, and its chat listed", {}, async (page) => {
  await message(page).fill("What is Goldcrest?");
  await message(page).press("Enter");
  await page.getByText("Goldcrest is a desktop chat app").first().waitFor();
  await answered(page);
  assert.equal(await message(page).inputValue(), "");
  await chats(page).getByText("What is Goldcrest?").waitFor();
  assert.match(await log(page).innerText(), /tokens\/s · \d+ tokens · (?:under )?0\.1 s to start/);
  await soon(async () =>
    assert(
      await message(page).evaluate((box) => box === document.activeElement),
      "the cursor is back",
    ),
  );
});

scene(
  "thinking is a region of its own, live, then folded, and stays open if opened",
  { pause: 6 },
  async (page) => {
    await ask(page, "What is Goldcrest?");
    const thinking = log(page).getByRole("group", { name: "Thinking" });
    await thinking.getByText(/Thinking… \d+ s/).waitFor();
    await thinking.getByText("They ask about the app itself.").waitFor();
    const fold = thinking.getByRole("button", { name: /^(Thinking|Thought)/ });
    await fold.click();
    await resume(page);
    await answered(page);
    assert.match(await thinking.innerText(), /Thought [\s\S]*best\./, "it stays open");
    await fold.click();
    await thinking.getByText("They ask").waitFor({ state: "detached" });
  },
);

scene("stop takes the place of send, and keeps what is there", { rate: 30 }, async (page) => {
  const send = await button(page, "Send").boundingBox();
  await button(page, "Thinking").click();
  await message(page).fill(ENDLESS);
  await message(page).press("Enter");
  await button(page, "Stop").waitFor();
  assert.equal(await button(page, "Send").count(), 0);
  const stop = await button(page, "Stop").boundingBox();
  assert.equal(stop.x, send.x);
  await page.getByText("The goldcrest weighs").first().waitFor();
  await page.keyboard.press("Escape");
  await button(page, "Continue").waitFor();
  assert.match(await log(page).innerText(), /The goldcrest weighs[\s\S]*Stopped\./);
  await button(page, "Continue").click();
  await log(page).getByText("to the end of the thought").waitFor();
});

scene("the thinking switch says whether it is on, and the answer follows it", {}, async (page) => {
  const toggle = button(page, "Thinking");
  assert.equal(await toggle.getAttribute("aria-pressed"), "true");
  await toggle.click();
  assert.equal(await toggle.getAttribute("aria-pressed"), "false");
  await ask(page, "What is Goldcrest?");
  await answered(page);
  assert.equal(await log(page).getByRole("group", { name: "Thinking" }).count(), 0);
});

scene("an input method's Enter accepts a word and sends nothing", {}, async (page) => {
  await message(page).fill("日本");
  await message(page).evaluate((box) => {
    for (const init of [
      { key: "Enter", isComposing: true },
      { key: "Enter", keyCode: 229 },
    ])
      box.dispatchEvent(new KeyboardEvent("keydown", { ...init, bubbles: true, cancelable: true }));
  });
  assert.equal(await message(page).inputValue(), "日本");
  await message(page).press("Shift+Enter");
  assert.equal(await message(page).inputValue(), "日本\n");
  await message(page).press("Enter");
  await log(page).getByText("日本").waitFor();
});

scene(
  "Ctrl+Enter sends nothing where Enter does, and ArrowUp edits nothing meanwhile",
  { rate: 60 },
  async (page) => {
    await message(page).fill("Not yet");
    await message(page).press("Control+Enter");
    assert.deepEqual(await calls(page, "send"), []);
    assert.equal(await message(page).inputValue(), "Not yet");
    await message(page).fill("");
    await ask(page, ENDLESS);
    await button(page, "Stop").waitFor();
    await message(page).press("ArrowUp");
    assert.equal(await page.getByRole("textbox", { name: "Edit message text" }).count(), 0);
  },
);

scene(
  "while an answer is written it says so, and those before it stay as they are",
  { rate: 1000 },
  async (page) => {
    const answers = log(page).getByRole("article", { name: "Answer" });
    await ask(page, "Tell me a story");
    await answered(page);
    assert.equal(await answers.last().getAttribute("aria-busy"), "false");
    await ask(page, ENDLESS);
    await button(page, "Stop").waitFor();
    assert.equal(await answers.last().getAttribute("aria-busy"), "true");
    const first = answers.first();
    for (const name of ["Regenerate", "Edit answer"])
      assert(await first.getByRole("button", { name, exact: true }).isDisabled(), name);
  },
);

scene("an edit is kept until it is saved or given up, and Save asks nothing", {}, async (page) => {
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  await ask(page, "Tell me a story");
  await answered(page);
  await message(page).press("ArrowUp");
  await editor.fill("half an edit");
  await chats(page).getByText("Sourdough").click();
  await editor.waitFor({ state: "detached" });
  await chats(page).getByText("Tell me a story").click();
  assert.equal(await editor.inputValue(), "half an edit");
  await page.getByRole("searchbox").fill("birds");
  await editor.press("Escape");
  await editor.waitFor({ state: "detached" });
  assert.equal(await page.getByRole("searchbox").inputValue(), "birds", "one thing at a time");
  await page.getByRole("searchbox").press("Escape");

  await message(page).press("ArrowUp");
  await editor.fill("A corrected story");
  await button(page, "Save").click();
  await editor.waitFor({ state: "detached" });
  const edits = await calls(page, "editMessage");
  assert.deepEqual(
    edits.map(([, , text, answer]) => [text, answer]),
    [["A corrected story", null]],
  );
});

scene("an input method's Escape ends neither an answer nor an edit", { rate: 60 }, async (page) => {
  const escape = (box) => {
    const init = { key: "Escape", isComposing: true, bubbles: true, cancelable: true };
    box.dispatchEvent(new KeyboardEvent("keydown", init));
  };
  await ask(page, ENDLESS);
  await button(page, "Stop").waitFor();
  await message(page).evaluate(escape);
  assert.deepEqual(await calls(page, "stop"), []);
  await message(page).press("Escape");
  await button(page, "Stop").waitFor({ state: "detached" });
  await message(page).press("ArrowUp");
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  await editor.fill("日本");
  await editor.evaluate(escape);
  assert.equal(await editor.inputValue(), "日本");
});

scene("a marked question is copied as it was written", {}, async (page) => {
  const text = Array.from({ length: 130 }, (_, at) => (at % 9 ? `Line ${at}` : "")).join("\n");
  await message(page).fill(`Look:\n${text}`);
  await message(page).press("Enter");
  await button(page, "Show all").click();
  const marked = () =>
    page.evaluate(() => {
      document.getSelection().selectAllChildren(document.querySelector(".bubble"));
      return document.getSelection().toString();
    });
  await soon(async () => assert.equal((await marked()).trimEnd(), `Look:\n${text}`.trimEnd()));
});

scene("the message box grows to about eight lines, then scrolls", {}, async (page) => {
  const height = async () => (await message(page).boundingBox()).height;
  const one = await height();
  await message(page).fill("a\nb\nc");
  assert((await height()) > one + 40);
  await message(page).fill("line\n".repeat(40));
  const most = await height();
  assert(most > 190 && most < 240, `${most}`);
  await message(page).fill("");
  assert.equal(await height(), one);
});

scene("versions: regenerate, turn back, edit by ArrowUp", { rate: 4000 }, async (page) => {
  await ask(page, "Tell me a story");
  await answered(page);
  await regenerate(page);
  await page.getByText("2/2").waitFor();
  await answered(page);
  await button(page, "Previous version").click();
  await page.getByText("1/2").waitFor();
  await message(page).press("ArrowUp");
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  assert.equal(await editor.inputValue(), "Tell me a story");
  await editor.press("Escape");
  await editor.waitFor({ state: "detached" });
  await message(page).press("ArrowUp");
  await editor.fill("What is Goldcrest?");
  const thinks = () =>
    page.evaluate(() => window.stage.calls.filter(([verb]) => verb === "editMessage").at(-1)?.[3]);
  const toggle = button(page, "Thinking");
  const on = (await toggle.getAttribute("aria-pressed")) === "true";
  await toggle.click();
  await button(page, "Save and answer").click();
  await log(page).getByText("Goldcrest is a desktop chat app").waitFor();
  assert.equal(await thinks(), !on, "it is answered as the switch says");
});

scene(
  "the view follows the end, lets go at the first move up, and takes hold at the end again",
  { rate: 150 },
  async (page) => {
    await ask(page, ENDLESS);
    // On a busy machine the view may be off the end between a flush and the frame that scrolls.
    const atEnd = () =>
      page.waitForFunction(() => {
        const view = document.querySelector("[role=log]");
        return view.scrollHeight - view.scrollTop - view.clientHeight < 30;
      });
    await page.getByRole("table").first().waitFor();
    await page.waitForTimeout(1500);
    await atEnd();
    await page.mouse.move(640, 300);
    await page.mouse.wheel(0, -240);
    await button(page, "Go to the latest message").waitFor();
    const top = await log(page).evaluate((view) => view.scrollTop);
    await page.waitForTimeout(700);
    assert.equal(
      await log(page).evaluate((view) => view.scrollTop),
      top,
      "it rests where the reader is",
    );
    await button(page, "Go to the latest message").click();
    await page.waitForFunction(() => !document.querySelector(".latest"));
    await page.waitForTimeout(700);
    await atEnd();
    await page.keyboard.press("Escape");
  },
);

scene(
  "nothing jumps when the answer ends, or when something is unfolded",
  { rate: 3000 },
  async (page) => {
    await ask(page, "A long answer of 1500 tokens");
    await answered(page);
    await page.waitForTimeout(200);
    const top = () => log(page).evaluate((view) => view.scrollTop);
    const before = await top();
    await page.getByRole("button", { name: /tokens\/s/ }).click();
    await page.getByText("Seed").waitFor();
    assert.equal(await top(), before);
  },
);

scene("only the last block is drawn again while the answer grows", { rate: 300 }, async (page) => {
  await button(page, "Thinking").click();
  await ask(page, ENDLESS);
  await page.getByRole("table").first().waitFor();
  const touched = await page.evaluate(async () => {
    const answer = document.querySelector(".answer");
    // Code is coloured later, by a worker.
    const isText = (block) => !block.querySelector("figure.code");
    const blocks = [...answer.querySelectorAll(".block")].slice(0, -1).filter(isText);
    let count = 0;
    // Ignores colours from the worker, which may arrive after the next block.
    const redrawn = ({ target }) => !(target instanceof Element && target.closest(".piece"));
    const watch = new MutationObserver((changes) => (count += changes.filter(redrawn).length));
    for (const block of blocks)
      watch.observe(block, { childList: true, subtree: true, characterData: true });
    const length = answer.textContent.length;
    while (answer.textContent.length < length + 500)
      await new Promise((resolve) => setTimeout(resolve, 50));
    return { count, blocks: blocks.length };
  });
  assert.equal(touched.count, 0);
  assert(touched.blocks >= 2);
  await page.keyboard.press("Escape");
});

scene("what a hostile answer says stays text", { rate: 20_000 }, async (page) => {
  await button(page, "Thinking").click();
  const hostile = [
    '<img src="x" onerror="window.hit = 1"><script>window.hit = 1</script>',
    "![pixel](https://evil.example/pixel.png)",
    "[press](javascript:window.hit=1)",
    "$\\href{javascript:window.hit=1}{x}$ $\\htmlClass{a}{x}$",
    '```html"><img src=x onerror=window.hit=1>\n<b onclick="window.hit=1">x</b>\n```',
    "| a |\n|:-:|\n| <style>body{display:none}</style> |",
  ].join("\n\n");
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await ask(page, `Say: ${hostile}`);
  await answered(page);
  assert.equal(await page.evaluate(() => window.hit), undefined);
  assert.deepEqual(
    asked.filter((url) => !url.startsWith("http://127.0.0.1")),
    [],
  );
  const made = log(page).locator(".answer");
  assert.equal(
    await made.locator("img, script, style, form, [style], [onclick], [onerror]").count(),
    0,
  );
  assert.equal(await made.getByRole("link").count(), 1, "the picture's address");
});

scene("a link opens only after its whole address was shown", { rate: 20_000 }, async (page) => {
  await ask(
    page,
    "Say: [your bank](https://bank.example.evil.example/a?b=c), [mine](https://bank.example@evil.example/)",
  );
  await answered(page);
  // Text before an @ disguises the host after it.
  assert.equal(await page.getByRole("link", { name: "mine" }).count(), 0);
  await page.getByRole("link", { name: "your bank" }).click();
  const dialog = page.getByRole("dialog");
  assert.match(await dialog.innerText(), /https:\/\/bank\.example\.evil\.example\/a\?b=c/);
  assert.equal(await dialog.locator("strong").innerText(), "bank.example.evil.example");
  const opened = () =>
    page.evaluate(() => window.stage.calls.filter(([verb]) => verb === "openLink"));
  await button(page, "Cancel").click();
  assert.deepEqual(await opened(), []);
  await page.getByRole("link", { name: "your bank" }).click();
  await button(page, "Open in browser").click();
  assert.deepEqual(await opened(), [["openLink", "https://bank.example.evil.example/a?b=c"]]);
  assert.match(page.url(), /127\.0\.0\.1/);
});

scene(
  "formulas keep what MathML needs, code and tables can be copied and reached",
  { rate: 20_000 },
  async (page) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await ask(page, "How does compound interest work? With a table");
    await answered(page);
    const math = log(page).locator("math[display=block]");
    assert.equal((await math.locator('mo[stretchy="false"]').count()) > 0, true);
    assert.equal((await log(page).locator('td[align="right"]').count()) > 0, true);
    await button(page, "Copy code").click();
    await page.getByText("Copied").waitFor();
    const copied = (words) =>
      soon(async () =>
        assert.match(await page.evaluate(() => navigator.clipboard.readText()), words),
      );
    await copied(/^def balance/);
    await button(page, "Copy answer").click();
    await copied(/^Compound interest pays[\s\S]*\$\$/);
  },
);

scene(
  "a screen reader hears whole sentences, not tokens",
  { rate: 100, pause: 25 },
  async (page) => {
    await button(page, "Thinking").click();
    await page.evaluate(() => {
      const region = document.querySelector("p[role=status][aria-live=polite]");
      window.said = [];
      const watch = new MutationObserver(() => window.said.push(region.textContent));
      watch.observe(region, { childList: true, subtree: true, characterData: true });
    });
    const said = () => page.evaluate(() => window.said);
    await ask(page, "Tell me a story");
    await soon(async () =>
      assert.deepEqual(await said(), [
        "The goldcrest weighs about as much as a sheet of paper, and in October it crosses the North Sea.",
      ]),
    );
    await resume(page);
    await answered(page);
    await soon(async () => assert.match((await said()).at(-1), /not the same as slight/));
    const all = await said();
    assert(all.length < 12, JSON.stringify(all));
    assert.match(all.join(" "), /Nobody who has held one[\s\S]*tips of the spruce/);
    assert.equal(await log(page).getAttribute("aria-live"), "off");
  },
);

scene("a refused message stays in the box, with the reason", {}, async (page) => {
  await ask(page, "please refuse this");
  await page.getByRole("alert").getByText("40,120 tokens").waitFor();
  assert.equal(await message(page).inputValue(), "please refuse this");
});

const ROW =
  "| Mercury | 3.30 | 4,879 km | 4,222.6 h | 88.0 d | 57.9 million km | 167 °C | known of old |\n";
const TABLE = ROW + "|---|---|---|---|---|---|---|---|\n" + ROW.repeat(3);

for (const [width, sentences] of [
  [1700, 1],
  [1700, 2000],
  [420, 1],
]) {
  scene(
    `a wide table takes the room there is at ${width} px, below ${sentences} paragraphs`,
    { width, rate: 100_000 },
    async (page) => {
      await button(page, "Thinking").click();
      await ask(page, `Say: ${"A few words.\n\n".repeat(sentences)}${TABLE}`);
      await answered(page);
      const table = log(page).locator(".table");
      await table.scrollIntoViewIfNeeded();
      const seen = await table.evaluate((table) => {
        const box = table.getBoundingClientRect();
        const text = table.closest(".answer").querySelector("p").getBoundingClientRect();
        const cell = document.elementFromPoint(box.right - 8, box.top + 60);
        const lines = [...table.querySelectorAll("tr")].map((row) => row.offsetHeight);
        return {
          wider: box.width > text.width,
          starts: box.left - text.left,
          inWindow: box.right <= innerWidth,
          painted: table.contains(cell),
          scrolls: table.scrollWidth > table.clientWidth,
          oneLine: Math.max(...lines) < 45,
          pageScrolls: document.documentElement.scrollWidth > innerWidth,
        };
      });
      const wide = width > 420;
      assert.deepEqual(seen, {
        wider: wide,
        starts: 0,
        inWindow: true,
        painted: true,
        scrolls: !wide,
        oneLine: true,
        pageScrolls: false,
      });
    },
  );
}
