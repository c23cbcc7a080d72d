// Text fields that are removed while focused. WebKit's web process crashes about a second later
// (2.50, if it keeps its accessibility tree), so each field must be blurred first.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { App } from "./app.js";
import { Display } from "./driver.js";

const CONTROL = "\uE009";
const ESCAPE = "\uE00C";
const ENTER = "\uE007";
const F2 = "\uE032";
const UP = "\uE013";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

const focus = async (app, role, name) => app.focus(await app.get(role, name));

async function rename(app) {
  await focus(app, "button", "What is Goldcrest?");
  await app.session.press(F2);
}

async function edit(app) {
  await focus(app, "textbox", "Message");
  await app.session.press(UP);
}

async function change(app) {
  await edit(app);
  await app.get("textbox", "Edit message text");
  await app.session.press("x");
}

async function searchSettings(app) {
  await app.session.press(CONTROL, ",");
  await focus(app, "combobox", "Search the settings");
}

/** Each field by its opening action and the keys that close it. */
const fields = {
  "a chat's title, left as it is": [rename, ESCAPE],
  "a chat's title": [rename, ENTER],
  "the search in a chat": [(app) => app.session.press(CONTROL, "f"), ESCAPE],
  "the palette": [(app) => app.session.press(CONTROL, "k"), ESCAPE],
  "the search of the settings": [searchSettings, ESCAPE],
  "a message, left as it is": [edit, ESCAPE],
  "a message": [change, CONTROL, ENTER],
};

for (const [name, [open, ...keys]] of Object.entries(fields))
  test(`the field of ${name} goes, and the page stays`, async (t) => {
    const app = await App.open(t, display);
    await app.ask("What is Goldcrest?");
    // Querying an accessible name makes WebKit build that tree.
    await app.get("button", "What is Goldcrest?");
    await open(app);
    await app.until("a text field with the focus", () =>
      app.session.run(
        "window.field = document.activeElement; return field.matches('input, textarea') && field.ariaLabel !== 'Message'",
      ),
    );
    await sleep(500);
    await app.session.press(...keys);
    await app.until("it to be gone", () => app.session.run("return !window.field.isConnected"));
    await sleep(1500);
    assert.match(await app.text(), /Goldcrest/);
  });
