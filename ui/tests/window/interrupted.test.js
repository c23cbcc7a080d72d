import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { App, dataFolder, SLOW } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Sends a message and waits for the first text of the answer. Returns it as stored. */
async function underWay(app) {
  await app.sendEndless();
  return app.until("some of the answer", async () => {
    const last = (await app.openChat())?.messages.at(-1);
    return last?.role === "assistant" && last.text.length > 80 && last;
  });
}

test("Stop ends the answer at once and keeps what was written", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  await underWay(app);
  const stop = await app.get("button", "Stop");
  const pressed = Date.now();
  await app.session.click(stop);
  const answer = await app.answered(2_000);
  t.diagnostic(`stopped after ${Date.now() - pressed} ms, the driver's own time included`);
  assert.equal(answer.state, "stopped");
  assert(answer.text.length > 0);
  await app.get("button", "Send");
  await sleep(500);
  assert.equal(
    (await app.openChat()).messages.at(-1).text,
    answer.text,
    "nothing is written after the end",
  );
});

test("two chats are answered at once, and Stop ends the answer of the shown one", async (t) => {
  const app = await App.open(t, display, { env: SLOW });
  const first = (await underWay(app), (await app.openChat()).chat.id);
  await app.click("button", "New chat");
  await app.send("Count from 500 to 1");
  const second = (await app.snapshot()).current;
  assert.notEqual(second, first);
  const answer = async (id) => (await app.openChat(id)).messages.at(-1);
  const before = await answer(first);
  await app.until("both to go on", async () => {
    const [one, two] = [await answer(first), await answer(second)];
    return one.text.length > before.text.length + 40 && two.text.length > 40;
  });
  assert.equal((await answer(first)).state, "writing");
  await app.click("button", "Stop");
  await app.until("the second one to end", async () => (await answer(second)).state === "stopped");
  const left = await answer(first);
  await app.until("the first one to go on", async () => {
    const { text, state } = await answer(first);
    return state === "writing" && text.length > left.text.length;
  });
});

test("a chat is there after a restart", async (t) => {
  const data = dataFolder(t);
  const first = await App.open(t, display, { data });
  await first.exact();
  const answer = await first.ask("What is Goldcrest?");
  await first.close();

  const second = await App.open(t, display, { data });
  assert.equal((await second.snapshot()).firstStart, false);
  const list = await second.get("list", "Chats");
  await second.until("the chat in the list", async () =>
    (await second.text(list)).includes("What is Goldcrest?"),
  );
  const { messages } = await second.openChat();
  assert.deepEqual(
    messages.map(({ role, text }) => [role, text]),
    [
      ["user", "What is Goldcrest?"],
      ["assistant", answer.text],
    ],
  );
});

test("kill -9 amid an answer loses at most half a second of it, and it can be continued", async (t) => {
  const data = dataFolder(t);
  const first = await App.open(t, display, { data, env: SLOW });
  const written = await underWay(first);
  await sleep(500);
  first.crash();

  const second = await App.open(t, display, { data });
  const partial = (await second.openChat()).messages.at(-1);
  assert.equal(partial.state, "interrupted");
  assert(partial.text.startsWith(written.text), "what was there half a second before is lost");
  await second.until("the interruption on the screen", async () =>
    /closed before this answer/i.test(await second.text()),
  );
  await second.picture("interrupted");

  await second.exact({ maxTokens: 40 });
  await second.click("button", /^Continue/);
  const whole = await second.until("the answer to go on", async () => {
    const last = (await second.openChat()).messages.at(-1);
    return !["writing", "interrupted"].includes(last.state) && last;
  });
  assert.match(whole.state, /done|limit/);
  assert.equal(whole.id, partial.id);
  assert(whole.text.startsWith(partial.text));
});
