import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { App, hooks } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** A port that is likely free. */
const PORT = 20_000 + (process.pid % 20_000);

test("a program is answered by the model of the window", hooks, async (t) => {
  const app = await App.open(t, display);
  const { newKey } = await app.invoke("set_api", { on: true, port: PORT, origins: [] });
  const status = async () => (await app.invoke("api_state")).status;
  await app.until("the socket", async () => (await status()).kind === "listening");
  const { baseUrl } = await status();
  assert.equal(baseUrl, `http://127.0.0.1:${PORT}/v1`);
  const ask = (key) =>
    fetch(`${baseUrl}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        messages: [{ role: "user", content: "Hi" }],
        reasoning_effort: "none",
        max_tokens: 8,
      }),
    });
  const reply = await ask(newKey);
  assert.equal(reply.status, 200);
  assert.equal((await reply.json()).usage.completion_tokens, 8);
  assert.deepEqual((await app.invoke("snapshot")).chats, [], "nothing is stored");

  const { processes } = await app.invoke("check_network");
  const sockets = processes.filter((it) => it.network.length > 0 && it.role === "api");
  assert.ok(
    sockets[0]?.network.every((it) => it.includes(`:${PORT}`)),
    JSON.stringify(processes),
  );
  const again = await app.invoke("replace_api_key");
  await app.until("the new key", async () => (await ask(again.newKey)).status === 200);
  assert.equal((await ask(newKey)).status, 401);

  await app.click("button", /^Local API: /);
  await app.get("switch", "Let other programs on this computer use Goldcrest");
  await app.picture("local-api");
  await app.click("switch", "Let other programs on this computer use Goldcrest");
  await app.until("the end", async () => (await status()).kind === "off");
  await assert.rejects(ask(again.newKey));
});
