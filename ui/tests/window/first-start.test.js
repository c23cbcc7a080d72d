import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { App, SLOW } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

test("the first start says what this is, and the bundled model answers", async (t) => {
  const app = await App.open(t, display);
  const { firstStart, chats, model } = await app.snapshot();
  assert.equal(firstStart, true);
  assert.deepEqual(chats, []);
  assert.equal(model.status.model.bundledModel, true);
  await app.until("the word on where all that is written stays", async () => {
    const welcome = await app.text();
    return /Goldcrest/.test(welcome) && /computer|machine/.test(welcome);
  });
  await app.picture("welcome");

  await app.exact();
  const answer = await app.ask("What is Goldcrest?");
  assert.equal(answer.state, "done");
  assert.match(answer.text, /Goldcrest/);
  assert.match(answer.text, /computer/);
  await app.until("the answer on the screen", async () =>
    (await app.conversation()).includes("computer"),
  );
  assert(answer.stats.tokens > 5 && answer.stats.tokensPerSecond > 0);
  await app.picture("answer");

  // The chat is named after its first line, and is in the list.
  const list = await app.get("list", "Chats");
  await app.until("the chat in the list", async () =>
    (await app.text(list)).includes("What is Goldcrest?"),
  );
});

test("an answer appears as it is written, word by word", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await app.sendEndless();
  const lengths = new Set();
  await app.until("the text at several lengths", async () => {
    lengths.add((await app.conversation()).length);
    return lengths.size > 3;
  });
  assert(await app.isThere("button", "Stop"), "the answer is still being written");
  await app.picture("mid-answer");
  await app.click("button", "Stop");
  await app.answered();
});

test("controls have the roles and names that assistive technology reads", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await app.exact();
  const wanted = [
    ["textbox", "Message"],
    ["button", "Send"],
    ["button", "New chat"],
  ];
  for (const [role, name] of wanted) {
    const element = await app.get(role, name);
    assert.equal(await app.session.of(element, "computedrole"), role, name);
  }
  const toggle = await app.get("button", "Thinking");
  assert.match(await app.session.of(toggle, "attribute/aria-pressed"), /true|false/);

  await app.sendEndless();
  // WebKit gives a list without items the role of a group.
  const chats = await app.get("list", "Chats");
  await app.until("the chats to be a list", async () => {
    return (await app.session.of(chats, "computedrole")) === "list";
  });
  await app.get("button", "Stop");
  assert.equal(await app.isThere("button", "Send"), false, "Stop takes the place of Send");
  await app.click("button", "Stop");
  await app.answered();
  const log = await app.get("log", "Conversation");
  assert.equal(await app.session.of(log, "computedrole"), "log");
  await app.get("button", "Regenerate");
});

test("the window follows the system's light or dark, and the setting goes before", async (t) => {
  const lightness = `const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number);
    return arguments.length + r + g + b`;
  const grounds = {};
  for (const [name, theme] of [
    ["light", "Adwaita"],
    ["dark", "Adwaita:dark"],
  ]) {
    const app = await App.open(t, display, { env: { GTK_THEME: theme } });
    assert.equal(
      await app.session.run("return matchMedia('(prefers-color-scheme: dark)').matches"),
      name === "dark",
    );
    await app.exact();
    await app.ask("show me a table of the shortcuts");
    grounds[name] = await app.session.run(lightness);
    await app.picture(name);
    await app.close();
  }
  assert(grounds.light > grounds.dark, JSON.stringify(grounds));
});
