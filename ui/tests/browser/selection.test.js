// Selection in the conversation: copying, and its stability during updates.
import assert from "node:assert/strict";
import { answered, ask, button, chats, log, resume, scenes } from "./window.js";

const scene = scenes();

/** Opens a chat with this text as its answers. */
async function openWith(page, text) {
  await page.evaluate((text) => {
    for (const { messages } of window.stage.library.chats.values())
      for (const message of messages.filter(({ role }) => role === "assistant"))
        message.parts = [{ kind: "text", text }];
  }, text);
  await chats(page).getByText("Sourdough").click();
  await log(page).locator(".block").first().waitFor();
}

/** Clipboard content after Ctrl+C of the text between two parts of the answer. */
function copied(page, from, to = from) {
  return page.evaluate(
    ([from, to]) => {
      const texts = document.createTreeWalker(
        document.querySelector(".answer"),
        NodeFilter.SHOW_TEXT,
      );
      const range = document.createRange();
      let began = false;
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (!began && text.data.includes(from)) range.setStart(text, text.data.indexOf(from));
        began ||= text.data.includes(from);
        if (began && text.data.includes(to)) {
          range.setEnd(text, text.data.indexOf(to) + to.length);
          break;
        }
      }
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      const data = new DataTransfer();
      range.startContainer.parentElement.dispatchEvent(
        new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }),
      );
      return { text: data.getData("text/plain"), html: data.getData("text/html") };
    },
    [from, to],
  );
}

scene("a copied selection is a line per block, without colours", {}, async (page) => {
  await openWith(
    page,
    `# Head

Some *words* with \`code\` and a [link](https://example.org/a?b=1&c=2).

- one
- two
  1. inner
- three

| A | B |
|---|---|
| 1 | 2 |

\`\`\`python
def f():
    return 1 < 2
\`\`\`

The end.`,
  );
  const { text, html } = await copied(page, "Head", "end.");
  assert.equal(
    text,
    `Head

Some words with code and a link.

- one
- two
  1. inner
- three

A	B
1	2

def f():
    return 1 < 2

The end.`,
  );
  assert.match(
    html,
    /^<h3>Head<\/h3><p>Some <em>words<\/em> with <code>code<\/code> and a <a href="https:\/\/example.org\/a\?b=1&amp;c=2">link<\/a>\.<\/p><ul>/,
  );
  assert.match(html, /<pre><code>def f\(\):\n {4}return 1 &lt; 2<\/code><\/pre><p>The end\.<\/p>$/);
  assert.doesNotMatch(html, /style|class|span/);
});

scene("of a part, only that part is copied", {}, async (page) => {
  await openWith(
    page,
    "First words here.\n\n```\none\ntwo\nthree\n```\n\n3. three\n4. four\n5. five",
  );
  assert.deepEqual(await copied(page, " words"), { text: " words", html: " words" });
  assert.deepEqual(await copied(page, "wo\nthr"), {
    text: "wo\nthr",
    html: "<pre><code>wo\nthr</code></pre>",
  });
  assert.equal((await copied(page, "ur", "fi")).text, "4. ur\n5. fi");
});

scene("a formula is copied whole, on the line that it stands on", {}, async (page) => {
  await openWith(page, "Then $x=1$ and $a+b$ and \\(\\unknown\\), so\n\n$$y=2$$\n\nholds.");
  const { text } = await copied(page, "x", "holds");
  assert.equal(text, "$x=1$ and $a+b$ and $\\unknown$, so\n\n$$y=2$$\n\nholds");
  // From within the first formula to within the second.
  assert.equal((await copied(page, "=", "+")).text, "$x=1$ and $a+b$");
});

/**
 * Selects the first occurrence of these words in the answer, and returns the whole text of the
 * answer.
 */
const select = (page, words) =>
  page.evaluate((words) => {
    const answer = [...document.querySelectorAll(".answer")].at(-1);
    const texts = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const at = text.data.indexOf(words);
      if (at >= 0) getSelection().setBaseAndExtent(text, at, text, at + words.length);
    }
    return answer.textContent;
  }, words);

for (const [what, words, source] of [
  [
    "a paragraph",
    "words",
    "Some words, and **bold** ones, that go on and on, `code` and more of them",
  ],
  [
    "a list",
    "first",
    "- first item of a list\n- second **item** of it\n- third item\n- fourth item",
  ],
  ["a table", "one", "| A | B |\n|---|---|\n| one | two |\n| three | four |\n| five | six |\n"],
  [
    "code",
    "function",
    "```python\ndef function(argument):\n    return argument + 1\n\nprint(2 + 2)\n",
  ],
])
  scene(`a selection in ${what} that grows stays`, { rate: 30, pause: 14 }, async (page) => {
    await page.evaluate((source) => void (window.stage.says = source), source);
    await button(page, "Thinking").click();
    await ask(page, "Go on");
    await log(page).locator(".answer").getByText(words).first().waitFor();
    const before = await select(page, words);
    await resume(page);
    await answered(page);
    assert.equal(await page.evaluate(() => String(getSelection())), words);
    assert.notEqual(await log(page).locator(".answer").last().textContent(), before);
  });
