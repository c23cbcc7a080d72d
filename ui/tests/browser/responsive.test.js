import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { answeredLong, fences, floods, pageTasks, timed } from "./responsive.js";
import { answered, ask, soon, Stand } from "./window.js";

let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

/**
 * Limit for the page's longest task, in milliseconds of processor time. A frozen page takes
 * seconds.
 */
const MOST_MS = 200;

/** Sends a message that is answered with `text`, and returns the cost for the page. */
async function flood(page, text) {
  await page.evaluate((text) => (window.stage.says = text), text);
  return pageTasks(stand, page, async () => {
    await ask(page, "Something long, please");
    await answeredLong(page);
    await page.waitForTimeout(1000);
  });
}

const length = (page) => page.evaluate(() => document.querySelector(".answer").textContent.length);

const cases = [
  ...Object.entries(fences),
  ["a word", floods.word],
  ["a letter", floods.letter],
  ["a bracket", floods.bracket],
  ["a formula's mark", floods["formula mark"].slice(0, 200_000)],
  ["an item of a list", floods["list item"].slice(0, 150_000)],
  ["a row of a table", floods["table row"].slice(0, 150_000)],
];

timed(
  () => stand,
  "the window does not stand still over a question of a megabyte",
  async () => {
    const page = await stand.page({ context: 2_000_000 });
    const text = "Съешь же ещё этих мягких французских булок, да выпей чаю. ".repeat(17_000);
    await page.getByRole("textbox", { name: "Message" }).focus();
    await page.keyboard.insertText(text);
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const all = page.getByRole("button", { name: "Show all" });
    await all.waitFor();
    // The scripted host also takes long, to count the words.
    await answered(page);
    const shown = await pageTasks(stand, page, async () => {
      await all.evaluate((button) => button.click());
      await page.waitForFunction(
        (length) => document.querySelector(".bubble").textContent.length >= length,
        text.trim().length,
      );
    });
    assert(shown.longest < MOST_MS, `a task of ${shown.longest} ms`);
    await page.context().close();
  },
);

for (const [name, text] of cases)
  timed(
    () => stand,
    `the window does not stand still over an endless answer: ${name}`,
    async (t) => {
      const page = await stand.page({ rate: 20_000, reading: 0 });
      await page.getByRole("button", { name: "Thinking", exact: true }).click();
      const grown = await flood(page, text);
      t.diagnostic(`${text.length} characters as they come: ${JSON.stringify(grown)}`);
      assert(grown.count > 50, "the page's tasks were seen");
      assert(grown.longest < MOST_MS, `a task of ${grown.longest} ms`);
      await soon(async () => {
        const shown = await length(page);
        assert(shown > text.length / 4, `${shown} characters are shown`);
      });
      const shown = Math.floor(text.length / 4);
      const open = (at) =>
        page.evaluate(
          (at) => document.querySelectorAll("[aria-label=Chats] li .open")[at].click(),
          at,
        );
      await open(1);
      await page.waitForFunction(
        () => (document.querySelector(".answer")?.textContent.length ?? 0) < 10_000,
      );
      const opened = await pageTasks(stand, page, async () => {
        await open(0);
        await page.waitForFunction(
          (shown) => document.querySelector(".answer")?.textContent.length >= shown,
          shown,
          { polling: 250, timeout: 60_000 },
        );
      });
      t.diagnostic(`at once: ${JSON.stringify(opened)}`);
      assert(opened.longest < MOST_MS, `a task of ${opened.longest} ms`);
      assert.deepEqual(page.faults, []);
      await page.context().close();
    },
  );

test("code has its colours, also in a list, and after code that took too long", async () => {
  const page = await stand.page({ rate: 20_000, reading: 0 });
  await page.getByRole("button", { name: "Thinking", exact: true }).click();
  const python = "```python\ndef f(x):\n    return 'two'\n```";
  const slow = fences["markdown [a]("].slice(0, 24_000);
  const answer = `${python}\n\n${slow}\n\`\`\`\n\n- In a list:\n\n  \`\`\`rust\n  fn main() {}\n  \`\`\`\n\nEnd.`;
  await page.evaluate((text) => (window.stage.says = text), answer);
  await ask(page, "Some code, please");
  await answeredLong(page);
  const [first, second, third] = [0, 1, 2].map((at) => page.locator("figure.code").nth(at));
  await first.locator(".hljs-keyword", { hasText: "def" }).waitFor();
  await third.locator(".hljs-keyword", { hasText: "fn" }).waitFor();
  assert.equal(await first.locator("code").textContent(), "def f(x):\n    return 'two'");
  assert.equal(await third.locator("code").textContent(), "fn main() {}");
  const plain = await second.locator("code").textContent();
  assert.equal(plain, slow.slice("```markdown\n".length));
  assert.equal(await second.locator("[class^=hljs]").count(), 0);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("a very long line of code has colours at its beginning, and the next line has them again", async () => {
  const page = await stand.page({ rate: 20_000, reading: 0 });
  const line = "<a/>".repeat(6_000);
  await said(page, `\`\`\`xml\n${line}\n<b>two</b>\n\`\`\`\n\nEnd.`);
  const code = page.locator("figure.code");
  await code.locator(".hljs-name", { hasText: /^b$/ }).first().waitFor({ state: "attached" });
  const text = await code.locator("code").textContent();
  assert(text === `${line}\n<b>two</b>`, `${text.length} characters are shown`);
  const coloured = await code.locator(".hljs-name", { hasText: /^a$/ }).count();
  assert(coloured > 1_000 && coloured < 2_500, `${coloured} of 6000 names have a colour`);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

/** Sends a message that is answered with `text`, and waits for the whole answer. */
async function said(page, text) {
  await page.getByRole("button", { name: "Thinking", exact: true }).click();
  await page.evaluate((text) => (window.stage.says = text), text);
  await ask(page, "Something long, please");
  await answeredLong(page);
}

test("a long table is one table with one head, as it comes and when it is opened", async () => {
  const page = await stand.page({ rate: 20_000, reading: 0 });
  const rows = Array.from({ length: 300 }, (_, at) => `| ${at} | a cell |\n`).join("");
  await said(page, `Before.\n\n| a | b |\n|---|---|\n${rows}\nAfter.`);
  const shape = () =>
    page.evaluate(() => {
      const count = (selector) => document.querySelectorAll(`.answer ${selector}`).length;
      const cells = [...document.querySelectorAll(".answer td:first-child")];
      return {
        tables: count("table"),
        heads: count("th"),
        inOrder: cells.every((cell, at) => cell.textContent === String(at)),
        rows: cells.length,
        // Columns have the same width in all rows.
        widths: new Set(cells.map((cell) => cell.getBoundingClientRect().width)).size,
      };
    });
  const one = { tables: 1, heads: 2, inOrder: true, rows: 300, widths: 1 };
  await soon(async () => assert.deepEqual(await shape(), one));
  const chats = page.locator("[aria-label=Chats] li .open");
  await chats.nth(1).click();
  await page.getByRole("article", { name: "You" }).filter({ hasNotText: "Something" }).waitFor();
  await chats.nth(0).click();
  await page.getByText("After.", { exact: true }).waitFor();
  await soon(async () => assert.deepEqual(await shape(), one));
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("what is far from the view is not laid out, in a long answer and in long code", async () => {
  for (const [text, parts] of [
    [floods.word.slice(0, 200_000), ".answer .group"],
    [fences["python lines"], ".answer .piece"],
  ]) {
    const page = await stand.page({ rate: 20_000, reading: 0 });
    await said(page, text);
    const laidOut = () =>
      page.evaluate((parts) => {
        // Only elements can be queried, and code whose highlighting timed out has none.
        const all = [...document.querySelectorAll(parts)].filter((part) => part.firstElementChild);
        const laid = all.filter((part) =>
          part.firstElementChild.checkVisibility({ contentVisibilityAuto: true }),
        );
        return { all: all.length, laid: laid.length };
      }, parts);
    await soon(async () => {
      const { all, laid } = await laidOut();
      assert(all > 8 && laid < all / 2, `${laid} of ${all} are laid out`);
    });
    const end = page.locator(`${parts} >> nth=-1`);
    assert(await end.isVisible(), "the end is shown");
    await page.context().close();
  }
});

test("a key in a composer that holds a long text does not measure it again", async () => {
  const page = await stand.page();
  const box = page.getByRole("textbox", { name: "Message" });
  await box.fill("short");
  const low = (await box.boundingBox()).height;
  await page.evaluate(() => {
    window.measured = 0;
    const { get } = Object.getOwnPropertyDescriptor(Element.prototype, "scrollHeight");
    Object.defineProperty(HTMLTextAreaElement.prototype, "scrollHeight", {
      get() {
        window.measured += this.value.length;
        return get.call(this);
      },
    });
  });
  await box.fill("word ".repeat(200));
  const high = (await box.boundingBox()).height;
  assert(high > low);
  await box.fill("word ".repeat(3900));
  await box.press("a");
  await box.press("b");
  assert.equal((await box.boundingBox()).height, high, "as tall as it gets");
  const measured = await page.evaluate(() => window.measured);
  assert(measured < 5000, `${measured} characters were measured`);
  await box.fill("short");
  assert.equal((await box.boundingBox()).height, low);
  await page.context().close();
});
