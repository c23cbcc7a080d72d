// Keys in text fields. WebKitGTK 2.50 supports Home, End and the arrow keys, with and without Ctrl
// and Shift; Ctrl+Backspace and Ctrl+Delete; Ctrl+A, C, X, V and Shift+V; Ctrl+Insert, Shift+Insert
// and Shift+Delete; paste by the middle button; and dragging of selected text. (The last two, and
// the keys with Insert and Shift+Delete, were tested with X events, since those of WebDriver
// differ.) It does not support undo and redo (Ctrl+Z, Ctrl+Shift+Z, Ctrl+Y), which
// ui/src/parts/text-history.ts implements, and checks spelling only if the program enables it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { App } from "./app.js";
import { Display } from "./driver.js";

const CONTROL = "\uE009";
const SHIFT = "\uE008";
const BACKSPACE = "\uE003";
const END = "\uE010";
const HOME = "\uE011";
const UP = "\uE013";
const ESCAPE = "\uE00C";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

const type = (app, text) => app.session.pressEach(text);
const field = (app) => app.session.run("return document.activeElement.value");
const undo = (app) => app.session.press(CONTROL, "z");
const redo = (app) => app.session.press(CONTROL, SHIFT, "Z");

/** Clears the field, as if by mistake. */
async function clear(app) {
  await app.session.press(CONTROL, "a");
  await app.session.press(BACKSPACE);
}

test("undo and redo work in the message box, and an emptied draft comes back", async (t) => {
  const app = await App.open(t, display);
  await app.focus(await app.get("textbox", "Message"));
  await type(app, "hello wide world");
  await undo(app);
  assert.equal(await field(app), "hello wide ");
  await redo(app);
  assert.equal(await field(app), "hello wide world");
  await undo(app);
  await app.session.press(CONTROL, "y");
  assert.equal(await field(app), "hello wide world");
  await app.session.press(CONTROL, BACKSPACE);
  assert.equal(await field(app), "hello wide ");
  await undo(app);
  assert.equal(await field(app), "hello wide world");
  await clear(app);
  assert.equal(await field(app), "");
  await undo(app);
  assert.equal(await field(app), "hello wide world");
  // The saved draft equals the text in the box.
  await app.until("the draft to be saved", async () => {
    const { newChatDraft } = await app.snapshot();
    return newChatDraft.text === "hello wide world";
  });
});

test("undo stays in the field that has the cursor, whichever it is", async (t) => {
  const app = await App.open(t, display);
  await app.ask("What is Goldcrest?");
  await app.focus(await app.get("textbox", "Message"));
  await type(app, "draft");
  const fields = {
    "the title": async () => {
      await app.focus(await app.get("button", "What is Goldcrest?"));
      await app.session.press("\uE032");
    },
    "the search in a chat": () => app.session.press(CONTROL, "f"),
    "the palette": () => app.session.press(CONTROL, "k"),
    "a setting": async () => {
      await app.session.press(CONTROL, ",");
      await app.focus(await app.get("combobox", "Search the settings"));
    },
    "a message": async () => {
      await app.focus(await app.get("textbox", "Message"));
      await clear(app);
      await app.session.press(UP);
    },
  };
  for (const [name, open] of Object.entries(fields)) {
    await open();
    await app.until(`${name} to have the focus`, () =>
      app.session.run(
        "return document.activeElement.matches('input, textarea') && document.activeElement.ariaLabel !== 'Message'",
      ),
    );
    await app.session.press(END);
    const start = await field(app);
    await type(app, "xyz");
    assert.equal(await field(app), `${start}xyz`, name);
    // On a busy machine, the pauses between the letters can make several steps of them.
    let steps = 0;
    for (; steps === 0 || (steps < 3 && (await field(app)) !== start); steps++) await undo(app);
    assert.equal(await field(app), start, name);
    for (let step = 0; step < steps; step++) await redo(app);
    assert.equal(await field(app), `${start}xyz`, name);
    for (let step = 0; step < steps; step++) await undo(app);
    await app.session.press(ESCAPE);
    if (name === "a setting") await app.session.press(ESCAPE);
    await app.until(`${name} to be gone`, () =>
      app.session.run("return !document.querySelector('dialog:modal')"),
    );
  }
});

test("with nothing to take back in the field, undo takes back what was done in the app", async (t) => {
  const app = await App.open(t, display);
  await app.ask("What is Goldcrest?");
  const { chats } = await app.snapshot();
  await app.invoke("rename_chat", { id: chats[0].id, title: "Another name" });
  await app.focus(await app.get("textbox", "Message"));
  await type(app, "ab");
  do await undo(app);
  while ((await field(app)) !== "");
  await undo(app);
  await app.get("button", "What is Goldcrest?");
  await redo(app);
  assert.equal(await field(app), "ab");
});

test("the keys of a text field that WebKit has itself", async (t) => {
  const app = await App.open(t, display);
  await app.focus(await app.get("textbox", "Message"));
  await type(app, "one two three");
  const cursor = () => app.session.run("return document.activeElement.selectionStart");
  await app.session.press(CONTROL, HOME);
  assert.equal(await cursor(), 0);
  await app.session.press(CONTROL, END);
  assert.equal(await cursor(), 13);
  await app.session.press(CONTROL, "\uE012");
  assert.equal(await cursor(), 8);
  await app.session.press(CONTROL, "\uE017");
  assert.equal(await field(app), "one two ");
  await app.session.press(CONTROL, "a");
  await app.session.press(CONTROL, "x");
  assert.equal(await field(app), "");
  await app.session.press(CONTROL, "v");
  assert.equal(await field(app), "one two ");
});

test("a megabyte from the clipboard is a chip at once", async (t) => {
  const app = await App.open(t, display);
  await app.session.run(`
    const box = document.createElement("textarea");
    box.value = "line of a longer text that is pasted\\n".repeat(27_000);
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    addEventListener("paste", () => (window.pastedAt = performance.now()), true);
    new MutationObserver(() => {
      if (document.querySelector("[aria-label='Pasted texts']")) window.shownAt ??= performance.now();
    }).observe(document.body, { childList: true, subtree: true });`);
  await app.focus(await app.get("textbox", "Message"));
  await app.session.press(CONTROL, "v");
  const took = await app.until("the chip", () =>
    app.session.run("return window.shownAt && window.shownAt - window.pastedAt"),
  );
  // WebKit itself took seconds to insert it.
  assert(took < 1000, `${took} ms`);
  assert.equal(await field(app), "");
});
