// A temporary chat in the real app: its text is in no file of the data folder.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder } from "./app.js";
import { Display } from "./driver.js";

const CONTROL = "\uE009";
const SHIFT = "\uE008";
const ENTER = "\uE007";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Files of a folder that contain a text, in UTF-8 or UTF-16. */
function holding(folder, text) {
  const wanted = ["utf8", "utf16le"].map((encoding) => Buffer.from(text, encoding));
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => {
      const bytes = readFileSync(file);
      return wanted.some((each) => bytes.includes(each));
    });
}

test("what is said in a temporary chat is in no file, while it goes on and after it", async (t) => {
  const data = dataFolder(t);
  const app = await App.open(t, display, { data });
  await app.exact();
  await app.ask("What is a quetzal?");
  assert.notDeepEqual(holding(data, "quetzal"), [], "a usual chat is found");

  await app.session.press(CONTROL, SHIFT, "n");
  await app.until("the sign", async () => app.isThere("heading", "Temporary chat"));
  const message = await app.get("textbox", "Message");
  // Longer than the debounce delays of drafts and prefill.
  await app.session.type(message, "What is a hoatzin? ");
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await app.session.type(message, `Tell me${ENTER}`);
  const temporary = async () => (await app.snapshot()).chats.find((chat) => chat.temporary);
  await app.until("the answer", async () => {
    const chat = await temporary();
    return chat?.title !== "" && chat?.writing === false;
  });
  await app.until("it in the conversation", async () =>
    (await app.conversation()).includes("hoatzin"),
  );
  await app.picture("temporary");
  // Idle work, such as saving KV caches, has begun.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  assert.deepEqual(holding(data, "hoatzin"), []);
  await app.close();
  assert.deepEqual(holding(data, "hoatzin"), []);
  const again = await App.open(t, display, { data });
  assert.deepEqual(
    (await again.snapshot()).chats.map((chat) => chat.title),
    ["What is a quetzal?"],
  );
});
