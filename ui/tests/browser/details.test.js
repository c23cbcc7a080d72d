// What an answer says about itself, and what its marks do.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answered, ask, Stand } from "./window.js";

let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

const button = (page, name) => page.getByRole("button", { name, exact: true });
const log = (page) => page.getByRole("log", { name: "Conversation" });

function scene(name, view, run) {
  test(name, async () => {
    const page = await stand.page(view);
    await run(page);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  });
}

/** Opens a chat whose answer has these fields, as the host has them stored. */
async function openWith(page, fields) {
  await page.evaluate((fields) => {
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ role }) => role === "assistant"))
        Object.assign(message, fields, { stats: { ...message.stats, ...fields.stats } });
  }, fields);
  await page.getByRole("list", { name: "Chats", exact: true }).getByText("Sourdough").click();
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
    await button(page, "8.3 tok/s · 1,112 tok · 12 s to first").click();
    const said = await log(page).locator("dl").innerText();
    assert.match(said, /300 cached \+ 100 new tokens, read at 184 tok\/s/);
    assert.match(said, /1,112 tokens, 138 of them thinking/);
    assert.match(said, /34 of 48 tokens/);
    assert.match(said, /Seed\s+7$/);
    const gauge = page.getByRole("img", { name: /^Context:/ });
    assert.equal(await gauge.getAttribute("aria-label"), "Context: 1,512 of 32,768 tokens (5 %)");
  },
);

scene("the time to the first token has one decimal until ten seconds", {}, async (page) => {
  await openWith(page, { stats: { firstTokenMs: 312, tokensPerSecond: 23.4, tokens: 9 } });
  await button(page, "23 tok/s · 9 tok · 0.3 s to first").waitFor();
});

for (const [omitted, says] of [
  [{ messages: 1, thinking: 0 }, "The context is full: the first message left out."],
  [
    { messages: 4, thinking: 2 },
    "The context is full: the first 4 messages and earlier thinking left out.",
  ],
  [{ messages: 0, thinking: 1 }, "The context is full: earlier thinking left out."],
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
  assert.equal(await copied(0), "echo hello\necho again\n");
  await log(page).getByText("Copied").waitFor({ state: "detached" });
  assert.equal(await copied(1), "let a = 1;");
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
    // The browser says what its policy refuses of the hostile texts, while they are parsed.
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
