// Details of an answer, and its Markdown.
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
  pass,
  scenes,
  soon,
  regenerate,
} from "./window.js";

const scene = scenes();

/** Opens a chat with these fields of a stored answer. */
async function openWith(page, fields) {
  await page.evaluate((fields) => {
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ role }) => role === "assistant"))
        Object.assign(message, fields, { stats: { ...message.stats, ...fields.stats } });
  }, fields);
  await chats(page).getByText("Sourdough").click();
  await log(page).waitFor();
}

scene(
  "what an answer cost is said in the right units, and its sums are right",
  {},
  async (page) => {
    const stats = {
      promptTokens: 400,
      cachedTokens: 300,
      tokens: 1112,
      thinkingTokens: 138,
      firstTokenMs: 12_000,
      tokensPerSecond: 8.25,
      readPerSecond: 184.4,
      draftedTokens: 48,
      acceptedTokens: 34,
      seed: 7,
    };
    await openWith(page, { stats });
    await button(page, "8.3 tokens/s · 1,112 tokens · 12 s to start").click();
    const said = await log(page).locator("dl").innerText();
    assert.match(said, /300 cached \+ 100 new tokens, read at 184 tokens\/s/);
    assert.match(said, /1,112 tokens, 138 of them thinking/);
    assert.match(said, /34 of 48 drafted tokens accepted/);
    assert.match(said, /Seed\s+7$/);
  },
);

scene("the time to the first token has one decimal until ten seconds", {}, async (page) => {
  await openWith(page, { stats: { firstTokenMs: 312, tokensPerSecond: 23.4, tokens: 9 } });
  await button(page, "23 tokens/s · 9 tokens · 0.3 s to start").waitFor();
});

for (const [omitted, says] of [
  [
    { messages: 1, thinking: 0 },
    "This chat is longer than the model can read. It did not see the first message.",
  ],
  [
    { messages: 1004, thinking: 2 },
    "This chat is longer than the model can read. It did not see the first 1,004 messages or earlier thinking.",
  ],
  [
    { messages: 0, thinking: 1 },
    "This chat is longer than the model can read. It did not see earlier thinking.",
  ],
])
  scene(
    `an answer says what the model was not given: ${JSON.stringify(omitted)}`,
    {},
    async (page) => {
      await openWith(page, { omitted });
      await log(page).getByRole("note").getByText(says, { exact: true }).waitFor();
    },
  );

scene("an answer that was given everything says nothing of it", {}, async (page) => {
  await openWith(page, { omitted: null });
  assert.equal(await log(page).getByRole("note").count(), 0);
});

scene("a failed answer says why, and can be continued", { rate: 4000 }, async (page) => {
  await ask(page, "please fail");
  const note = log(page).getByRole("note");
  await note.getByText("The device ran out of memory: 512 MB more are needed.").waitFor();
  await note.getByRole("button", { name: "Continue" }).click();
  await log(page).getByText("to the end of the thought").waitFor();
  await answered(page);
  assert.equal(await log(page).getByRole("note").count(), 0);
});

scene("an answer that was only thought about says so, and can be continued", {}, async (page) => {
  await page.evaluate(() => (window.stage.says = ""));
  await ask(page, "What is Goldcrest?");
  await answered(page);
  const note = log(page).getByRole("note");
  await note.getByText("The model thought, but wrote no answer.").waitFor();
  await button(page, "Regenerate").waitFor();
  await note.getByRole("button", { name: "Continue" }).click();
  await log(page).getByText("to the end of the thought").waitFor();
  await answered(page);
  assert.equal(await log(page).getByRole("note").count(), 0);
});

scene("an answer that fills the context is not to be continued", {}, async (page) => {
  const error = { code: "answer-full", message: "The answer fills the context." };
  await openWith(page, { state: "failed", error });
  await log(page).getByRole("note").getByText(error.message).waitFor();
  assert.equal(await button(page, "Continue").count(), 0);
});

scene("only the last answer can be continued", { scene: "long" }, async (page) => {
  await openWith(page, { state: "stopped" });
  await soon(async () => assert((await log(page).getByText("Stopped.").count()) > 1));
  assert.equal(await button(page, "Continue").count(), 1);
});

scene("while an answer is written, nothing else of its chat can be changed", {}, async (page) => {
  await ask(page, "Tell me a story");
  await answered(page);
  await regenerate(page);
  await page.getByText("2/2").waitFor();
  await answered(page);
  assert(await button(page, "Next version").isDisabled(), "the last version has none after it");
  await ask(page, ENDLESS);
  await button(page, "Stop").waitFor();
  for (const name of ["Regenerate", "Edit answer", "Edit message", "Previous version"])
    assert(await button(page, name).first().isDisabled(), name);
  await message(page).press("ArrowUp");
  assert.equal(await page.getByRole("textbox", { name: "Edit message text" }).count(), 0);
  await page.keyboard.press("Escape");
  await button(page, "Continue").waitFor();
  assert(!(await button(page, "Previous version").first().isDisabled()));
});

scene("an answer is edited, and nothing is answered to it", {}, async (page) => {
  await openWith(page, {});
  await button(page, "Edit answer").click();
  const editor = page.getByRole("textbox", { name: "Edit answer text" });
  assert.match(await editor.inputValue(), /^Here is the short answer/);
  assert.equal(await button(page, "Save and answer").count(), 0);
  await editor.fill("  Another answer\n");
  await editor.press("Control+Enter");
  await log(page).getByText("Another answer", { exact: true }).waitFor();
  const [[, , text, answer]] = await calls(page, "editMessage");
  assert.deepEqual([text, answer], ["Another answer", null]);
});

scene("an edited question is saved alone, or answered by Ctrl+Enter", {}, async (page) => {
  await openWith(page, {});
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  await button(page, "Edit message").click();
  await editor.fill("Kept for later");
  await button(page, "Save").click();
  await log(page).getByText("Kept for later").waitFor();
  assert.equal((await calls(page, "editMessage")).at(-1)[3], null);
  await button(page, "Edit message").click();
  await editor.fill("What is Goldcrest?");
  await editor.press("Control+Enter");
  await log(page).getByText("Goldcrest is a desktop chat app").waitFor();
  assert.equal((await calls(page, "editMessage")).at(-1)[3], true);
});

scene("a half-made edit is kept while another chat is read", {}, async (page) => {
  const editor = page.getByRole("textbox", { name: "Edit message text" });
  const open = async (title) => {
    await chats(page).getByText(title).click();
    await chats(page).locator("[aria-current=page]", { hasText: title }).waitFor();
  };
  await open("Sourdough");
  await button(page, "Edit message").click();
  const before = await editor.inputValue();
  await editor.fill("Half an ed");
  await open("Packing list");
  await editor.waitFor({ state: "detached" });
  await open("Sourdough");
  await soon(async () => assert.equal(await editor.inputValue(), "Half an ed"));
  await editor.fill(before);
  await open("Packing list");
  await editor.waitFor({ state: "detached" });
  await open("Sourdough");
  await log(page).getByText(before).waitFor();
  assert.equal(await editor.count(), 0, "a text as it was before is no edit");
});

scene("a model that cannot think is not asked to", {}, async (page) => {
  await openWith(page, {});
  await page.evaluate(async () => {
    const { model } = (await window.stage.snapshot()).model.status;
    const status = { state: "ready", model: { ...model, canThink: false } };
    window.stage.emit({ type: "model", model: { status, error: null } });
  });
  const toggle = page.locator("form").getByRole("button", { name: "Thinking" });
  await toggle.waitFor({ state: "detached" });
  await button(page, "Regenerate").click();
  const items = page.getByRole("menu").getByRole("menuitem");
  assert.deepEqual(await items.locator(".label").allTextContents(), [
    "Regenerate",
    "Shorter",
    "Longer",
  ]);
  await page.keyboard.press("Escape");
  await button(page, "Edit message").click();
  await button(page, "Save and answer").click();
  await soon(async () => assert.equal((await calls(page, "editMessage"))[0]?.[3], false));
});

scene("a long question is folded, and shown whole on demand", {}, async (page) => {
  await ask(page, `${"A long question. ".repeat(400)}The end of it.`);
  const question = page.getByRole("article", { name: "You" });
  await question.waitFor();
  assert.equal(await question.getByText("The end of it.").count(), 0);
  await button(page, "Show all").click();
  await question.getByText("The end of it.").waitFor();
  await button(page, "Show less").click();
  await question.getByText("The end of it.").waitFor({ state: "detached" });
});

for (const [thinkingMs, title] of [
  [300, "Thought briefly"],
  [59_400, "Thought for 59 s"],
  [119_000, "Thought for 1 min 59 s"],
])
  scene(`the time of thinking is said as a person would: ${title}`, {}, async (page) => {
    await openWith(page, { thinkingMs });
    await button(page, title).waitFor();
  });

scene("long thinking is shown from its beginning to its end", {}, async (page) => {
  const thinking = Array.from({ length: 4000 }, (_, at) => `Thought ${at}.`).join("\n");
  await openWith(page, { parts: [{ kind: "thinking", text: thinking }] });
  const region = log(page).getByRole("group", { name: "Thinking" });
  await region.getByRole("button").click();
  await soon(async () => {
    const shown = await region.locator(".piece").allTextContents();
    assert.equal(shown.join(""), thinking);
  });
});

scene(
  "what is loaded, and how far, is said while an answer waits",
  { scene: "loading" },
  async (page) => {
    await button(page, "Model: SmolLM3-Q4_K_M, loading 42 %").waitFor();
    await page.getByText("Loading 42 %", { exact: true }).waitFor();
    await ask(page, "Hello");
    await log(page).getByText("Loading model 42 %").waitFor();
  },
);

scene("what is read, and how far, is said before an answer", { reading: 60_000 }, async (page) => {
  await ask(page, "Hello");
  await log(page)
    .getByText(/^Reading your message: [\d,]+ of 2,040 tokens, \d+ (s|min) left$/)
    .waitFor();
});

scene("code is copied whole, at the top level and in a list", { rate: 20_000 }, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await ask(
    page,
    "Say: - one:\n\n  ```sh\n  echo hello\n  echo again\n  ```\n\n```js\nlet a = 1;\n```",
  );
  await answered(page);
  const copied = async (at) => {
    await log(page).getByRole("button", { name: "Copy code" }).nth(at).click();
    await log(page).getByText("Copied").waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  assert.equal(await copied(0), "echo hello\necho again");
  await pass(page);
  await log(page).getByText("Copied").waitFor({ state: "detached" });
  assert.equal(await copied(1), "let a = 1;");
});

scene("very long code is drawn and copied to its end", { rate: 20_000 }, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const code = Array.from({ length: 2500 }, (_, at) => `print(${at})`).join("\n");
  await page.evaluate((text) => (window.stage.says = text), `\`\`\`python\n${code}\n\`\`\``);
  await ask(page, "Some code");
  await answered(page);
  await soon(async () => assert.equal(await log(page).locator("pre code").textContent(), code));
  await button(page, "Copy code").click();
  await log(page).getByText("Copied").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), code);
});

scene("code is coloured as a whole, and by its own language", { rate: 20_000 }, async (page) => {
  const long = `text = """\n${"in the string\n".repeat(90)}"""`;
  const nested = (language) => `- In a list:\n\n  \`\`\`${language}\n  def f():\n  \`\`\`\n\n`;
  const says = `\`\`\`python\n${long}\n\`\`\`\n\n${nested("python")}${nested("json")}End.`;
  await page.evaluate((text) => (window.stage.says = text), says);
  await ask(page, "Some code");
  await answered(page);
  const figure = (at) => log(page).locator("figure.code").nth(at);
  await figure(1).locator(".hljs-keyword", { hasText: "def" }).waitFor();
  const pieces = figure(0).locator(".piece");
  assert.equal(await pieces.count(), 3);
  // The second piece is entirely within the string.
  await soon(async () =>
    assert.equal(
      await pieces
        .nth(1)
        .locator(".hljs-string")
        .allTextContents()
        .then((all) => all.join("")),
      "in the string\n".repeat(40),
    ),
  );
  await page.waitForTimeout(300);
  assert.equal(await figure(2).locator(".hljs-keyword").count(), 0);
});

scene("the middle button opens no link past the dialog", { rate: 20_000 }, async (page) => {
  await ask(page, "Say: [your bank](https://bank.example/)");
  await answered(page);
  const prevented = page.evaluate(
    () =>
      new Promise((resolve) =>
        window.addEventListener("auxclick", (event) => resolve(event.defaultPrevented)),
      ),
  );
  await page.getByRole("link", { name: "your bank" }).click({ button: "middle" });
  assert.equal(await prevented, true);
  assert.equal(page.context().pages().length, 1);
});

scene(
  "the sanitiser lets only text, links, tables, code and formulas through",
  {},
  async (page) => {
    const clean = (html) => page.evaluate((html) => String(window.sanitise(html)), html);
    for (const [hostile, left] of [
      ["<img src=x onerror=alert(1)>a", "a"],
      ["<style>body{display:none}</style>a", "a"],
      [
        "<form action=https://evil.example><input name=q><button>Go</button></form>",
        "<button>Go</button>",
      ],
      ["<textarea>a</textarea><select></select>b", "ab"],
      ["<audio src=a></audio><video src=b></video>c", "c"],
      ['<p style="position:fixed" id="app" name="x" class="y">a</p>', '<p class="y">a</p>'],
      ['<a href="javascript:alert(1)">a</a>', "<a>a</a>"],
      ['<a href="file:///etc/passwd">a</a>', "<a>a</a>"],
      ['<a href="https://a.example" onclick="x()">a</a>', '<a href="https://a.example">a</a>'],
      ["<script>alert(1)</script><iframe src=a></iframe><object></object>a", "a"],
      ["<svg><a href=x><circle></circle></a></svg>a", "a"],
      ["<math><mi>x</mi></math>", "<math><mi>x</mi></math>"],
    ])
      assert.equal(await clean(hostile), left, hostile);
    // Drops the browser's reports of what its policy blocks while hostile texts are parsed.
    page.faults = page.faults.filter((fault) => !fault.includes("Content Security Policy"));
  },
);

scene("no other script can make the page's policies", {}, async (page) => {
  const refused = await page.evaluate(() =>
    ["dompurify", "goldcrest-worker", "svelte-trusted-html", "another"].map((name) => {
      try {
        window.trustedTypes.createPolicy(name, { createHTML: (html) => html });
        return `${name} was made`;
      } catch {
        return "refused";
      }
    }),
  );
  assert.deepEqual(refused, ["refused", "refused", "refused", "refused"]);
  page.faults = page.faults.filter((fault) => !/trusted/i.test(fault));
});
