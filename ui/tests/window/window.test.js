// The window itself: its size, its zoom, and the safety of typed and pasted text.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { App, dataFolder, SLOW } from "./app.js";
import { Display } from "./driver.js";

const CONTROL = "\uE009";
const ENTER = "\uE007";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

const inner = (app) => app.session.run("return [innerWidth, innerHeight]");

test("the window goes down to 420 by 400, and there the sidebar lies over the chat", async (t) => {
  const app = await App.open(t, display);
  await app.session.send("POST", "/window/rect", { width: 420, height: 400 });
  await app.until("the smallest window", async () => {
    const [width, height] = await inner(app);
    return width === 420 && height === 400;
  });
  await app.until("no sidebar", async () => !(await app.isThere("button", "Hide sidebar")));
  const message = await app.get("textbox", "Message");
  await app.click("button", "Show sidebar");
  await app.get("button", "Hide sidebar");
  await app.click("button", "New chat");
  await app.until("no sidebar", async () => !(await app.isThere("button", "Hide sidebar")));
  await app.session.type(message, "x");
  await app.picture("smallest");
});

test("zoom is that of the web view, and is there again at the next start", async (t) => {
  const data = dataFolder(t);
  const first = await App.open(t, display, { data });
  const [width] = await inner(first);
  for (let step = 0; step < 5; step++) await first.session.press(CONTROL, "+");
  const isDouble = (app) => async () => Math.abs((await inner(app))[0] - width / 2) <= 1;
  await first.until("half as many pixels", isDouble(first));
  await first.picture("zoom-200");
  await first.close();
  const second = await App.open(t, display, { data });
  await second.until("half as many pixels", isDouble(second));
  await second.session.press(CONTROL, "0");
  await second.until("all pixels", async () => (await inner(second))[0] === width);
});

test("kill -9 loses neither a long paste nor a message that waits", async (t) => {
  const data = dataFolder(t);
  const first = await App.open(t, display, { data, env: SLOW });
  await first.sendEndless();
  const message = await first.get("textbox", "Message");
  await first.session.type(message, `And another${ENTER}`);
  const waiting = await first.get("list", "Waiting messages");
  assert.match(await first.text(waiting), /And another\s+Sends when this answer is done/);
  const pasted = "A long line of a log.\n".repeat(2000);
  await first.session.run(
    `arguments[0].focus();
     document.execCommand("insertText", false, arguments[1]);`,
    message,
    pasted,
  );
  await first.get("list", "Pasted texts");
  const { id } = (await first.snapshot()).chats[0];
  await first.until("it to be stored", async () => {
    const { draft } = await first.invoke("open_chat", { id });
    return draft.pastes[0] === pasted && draft.queue.length === 1;
  });
  first.crash();

  const second = await App.open(t, display, { data });
  const pastes = await second.get("list", "Pasted texts");
  assert.match(await second.text(pastes), /Pasted text, 44 KB/);
  const left = await second.get("list", "Waiting messages");
  assert.match(await second.text(left), /And another\s+Not sent yet/);
  await second.picture("drafts");
});

test("a message that waits is sent when the answer before it ends", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await app.sendEndless({ maxTokens: 800 });
  await app.session.type(await app.get("textbox", "Message"), `And another${ENTER}`);
  await app.get("list", "Waiting messages");
  const sent = await app.until(
    "the second answer",
    async () => {
      const { messages, draft } = await app.openChat();
      const done = messages.length === 4 && messages.every(({ state }) => state !== "writing");
      return done && { texts: messages.map(({ text }) => text), queue: draft.queue };
    },
    180_000,
  );
  assert.equal(sent.texts[2], "And another");
  assert.deepEqual(sent.queue, []);
  await app.until("nothing to wait", async () => !(await app.isThere("list", "Waiting messages")));
});

test("whoever types outside a field writes a message", async (t) => {
  const app = await App.open(t, display);
  await app.exact();
  await app.ask("What is Goldcrest?");
  await app.session.click(await app.get("log", "Conversation"));
  await app.session.press("H");
  await app.session.press("i");
  const message = await app.get("textbox", "Message");
  await app.until(
    "what was typed",
    async () => (await app.session.of(message, "property/value")) === "Hi",
  );
});
