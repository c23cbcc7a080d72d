import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Composer, whole } from "./composer.svelte";
import { Conversation } from "./conversation.svelte";
import { Layout } from "./layout.svelte";
import { Model } from "./model.svelte";
import { Notices } from "./notices.svelte";
import { start } from "./started.fixture";
import { Thinking } from "./thinking.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

type Stage = {
  composer: Composer;
  drafts: () => unknown[];
  host: FakeHost;
  layout: Layout;
  thinking: Thinking;
};

function stage(): Stage {
  const host = new FakeHost();
  const notices = new Notices();
  const model = new Model(host, notices);
  const thinking = new Thinking(model, new Conversation(host, notices));
  const layout = new Layout();
  const composer = new Composer(host, notices, thinking, layout);
  composer.start({ text: "", pastes: [] });
  const drafts = (): unknown[] => host.calls.filter(([verb]) => verb === "saveDraft");
  return { composer, drafts, host, layout, thinking };
}

test("a draft is saved after a pause, once", async () => {
  const { composer, drafts } = stage();
  for (const text of ["H", "He", "Hello"]) composer.write(text);
  await vi.advanceTimersByTimeAsync(100);
  expect(drafts()).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([["saveDraft", null, "Hello"]]);
});

test("the chat and all but the last word are read ahead after a pause", async () => {
  const { composer, host, thinking } = stage();
  const ahead = (): unknown[] => host.calls.filter(([verb]) => verb === "readAhead");
  composer.write("There");
  await vi.advanceTimersByTimeAsync(1000);
  expect(ahead()).toEqual([]);
  composer.write("There is no chat ye");
  await vi.advanceTimersByTimeAsync(1000);
  expect(ahead()).toEqual([["readAhead", null, "There is no chat ", true]]);
  composer.move(7);
  thinking.wanted = false;
  for (const text of ["Where ", "Where ar", "Where are my ch"]) composer.write(text);
  await vi.advanceTimersByTimeAsync(300);
  expect(ahead().slice(1)).toEqual([["readAhead", 7, "", true]]);
  await vi.advanceTimersByTimeAsync(200);
  expect(ahead().slice(2)).toEqual([["readAhead", 7, "Where are my ", false]]);
  // A message that is sent is not prefilled.
  composer.write("Where are they?");
  composer.take();
  await vi.advanceTimersByTimeAsync(1000);
  expect(ahead().length).toBe(3);
});

test("what was pasted is read ahead at once, behind a text that is finished", async () => {
  const { composer, host } = stage();
  const ahead = (): unknown[] => host.calls.filter(([verb]) => verb === "readAhead").slice(1);
  const paste = "x".repeat(30_000);
  composer.move(7);
  composer.paste(paste);
  composer.write("Sum th");
  await vi.advanceTimersByTimeAsync(1000);
  composer.write("Sum this up:");
  await vi.advanceTimersByTimeAsync(1000);
  composer.removePaste(0);
  expect(ahead()).toEqual([
    ["readAhead", 7, paste, true],
    ["readAhead", 7, "Sum ", true],
    ["readAhead", 7, `Sum this up:\n\n${paste}`, true],
    ["readAhead", 7, "Sum this up:", true],
  ]);
});

test("who leaves for another chat finds the draft again", () => {
  const { composer, drafts } = stage();
  composer.write("for a new chat");
  composer.move(7, { text: "kept there", pastes: [] });
  expect(composer.text).toBe("kept there");
  expect(drafts()).toEqual([["saveDraft", null, "for a new chat"]]);
  composer.move(null);
  expect(composer.text).toBe("for a new chat");
});

test("a message that was taken is no draft any more, and what is typed since is the new chat's", async () => {
  const { composer, drafts } = stage();
  composer.write("Hello");
  expect(composer.take()).toEqual({ chat: null, text: "Hello", pastes: [] });
  expect(composer.text).toBe("");
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([]);
  composer.write("more");
  await vi.advanceTimersByTimeAsync(1000);
  composer.settle(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([
    ["saveDraft", null, "more"],
    ["saveDraft", null, ""],
    ["saveDraft", 3, "more"],
  ]);
  composer.move(null);
  expect(composer.text).toBe("");
});

test("a refused message comes back before what was typed since, where it was written", async () => {
  const { composer, drafts } = stage();
  composer.write("Hello");
  const taken = composer.take();
  composer.write("and more");
  composer.putBack(taken);
  expect(composer.text).toBe("Hello\n\nand more");
  composer.putBack({ chat: 7, text: "for another chat", pastes: [] });
  expect(composer.text).toBe("Hello\n\nand more");
  expect(drafts()).toEqual([["saveDraft", 7, "for another chat"]]);
});

test("a message of a new chat that is refused while another is read waits in the new chat", () => {
  const { composer } = stage();
  composer.write("Hello");
  const taken = composer.take();
  composer.move(7);
  composer.putBack(taken);
  expect(composer.text).toBe("");
  composer.move(null);
  expect(composer.text).toBe("Hello");
});

test("a message that is refused while a draft is in the new chat comes before it", () => {
  const { composer } = stage();
  composer.write("Hello");
  const taken = composer.take();
  composer.write("and more");
  composer.move(7);
  composer.putBack(taken);
  composer.move(null);
  expect(composer.text).toBe("Hello\n\nand more");
});

test("a draft that was refused and then sent is not saved again", async () => {
  const { composer, drafts, host } = stage();
  host.full = true;
  composer.write("Hello");
  await vi.advanceTimersByTimeAsync(1000);
  host.full = false;
  composer.take();
  composer.resave();
  expect(drafts()).toEqual([]);
});

test("after its first message a new chat has a draft of its own", async () => {
  const { composer, drafts } = stage();
  composer.write("Hello");
  composer.take();
  composer.settle(3);
  composer.write("more");
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([["saveDraft", 3, "more"]]);
});

test("spaces alone are nothing to send", () => {
  const { composer } = stage();
  composer.write(" \n ");
  expect(composer.empty).toBe(true);
});

const LONG = "word ".repeat(5000);

test("a long paste stands beside the text, is saved at once, and is sent with it", async () => {
  const { composer, host } = stage();
  expect(composer.paste("short")).toBe(false);
  expect(composer.paste(LONG)).toBe(true);
  expect(composer.empty).toBe(false);
  expect(host.calls).toContainEqual(["savePastes", null, [LONG]]);
  composer.write("Sum this up:");
  const taken = composer.take();
  expect(whole(taken)).toBe(`Sum this up:\n\n${LONG}`);
  expect([composer.text, composer.pastes]).toEqual(["", []]);
  composer.putBack(taken);
  expect([composer.text, composer.pastes]).toEqual(["Sum this up:", [LONG]]);
});

test("what was pasted stays with its chat, and can be taken away", () => {
  const { composer, host } = stage();
  composer.paste(LONG);
  composer.move(7, { text: "", pastes: [`${LONG}7`] });
  expect(composer.pastes).toEqual([`${LONG}7`]);
  composer.removePaste(0);
  expect(host.calls.filter(([verb]) => verb === "savePastes").at(-1)).toEqual([
    "savePastes",
    7,
    [],
  ]);
});

test("a draft that is too long for the box stands beside it", () => {
  const { composer, host } = stage();
  const huge = "x".repeat(1_000_000);
  composer.move(7, { text: huge, pastes: [LONG] });
  expect([composer.text, composer.pastes]).toEqual(["", [huge, LONG]]);
  composer.move(8, { text: `Sum this up:\n\n${huge}`, pastes: [] });
  expect([composer.text, composer.pastes]).toEqual(["Sum this up:", [huge]]);
  const saved = host.calls.filter(([verb]) => verb !== "readAhead");
  expect(saved.slice(-2)).toEqual([
    ["saveDraft", 8, "Sum this up:"],
    ["savePastes", 8, [huge]],
  ]);
});

test("pastes that were refused are saved once there is room", async () => {
  const { composer, host } = stage();
  host.full = true;
  composer.paste(LONG);
  await vi.advanceTimersByTimeAsync(100);
  host.full = false;
  composer.resave();
  expect(host.calls.at(-1)).toEqual(["savePastes", null, [LONG]]);
});

test("what was pasted comes back in its order, before what was pasted since", () => {
  const { composer } = stage();
  const [first, second, third] = ["a", "b", "c"].map((letter) => letter.repeat(30_000));
  for (const paste of [first, second]) composer.paste(paste ?? "");
  const taken = composer.take();
  composer.paste(third ?? "");
  composer.putBack(taken);
  expect(composer.pastes).toEqual([first, second, third]);
});

test("the draft of a message that is kept elsewhere is none, but what was typed since is", async () => {
  const { composer, drafts } = stage();
  composer.write("Hello");
  await vi.advanceTimersByTimeAsync(1000);
  const taken = composer.take();
  composer.write("more");
  composer.forget(taken);
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([
    ["saveDraft", null, "Hello"],
    ["saveDraft", null, "more"],
  ]);
});

test("what was typed while a refused draft was on its way is saved, too", async () => {
  const { composer, drafts, host } = stage();
  host.full = true;
  composer.write("Hello");
  composer.flush();
  await vi.advanceTimersByTimeAsync(10);
  host.full = false;
  let release = (): void => undefined;
  const save = host.saveDraft.bind(host);
  host.saveDraft = async (...draft) => {
    host.saveDraft = save;
    await new Promise<void>((resolve) => (release = resolve));
    return save(...draft);
  };
  composer.resave();
  host.full = true;
  composer.write("Hello there");
  composer.flush();
  await vi.advanceTimersByTimeAsync(10);
  host.full = false;
  release();
  await vi.advanceTimersByTimeAsync(10);
  composer.resave();
  await vi.advanceTimersByTimeAsync(10);
  expect(drafts().at(-1)).toEqual(["saveDraft", null, "Hello there"]);
});

/** Delays the saving of drafts, each by less than the one before. */
function slowDrafts(host: FakeHost): void {
  const save = host.saveDraft.bind(host);
  let waits = 300;
  host.saveDraft = async (...draft) => {
    await new Promise((resolve) => setTimeout(resolve, (waits -= 100)));
    return save(...draft);
  };
}

test("drafts are saved one after the other, and one that is outdated is not", async () => {
  const { composer, drafts, host } = stage();
  slowDrafts(host);
  for (const text of ["H", "He", "Hello"]) {
    composer.write(text);
    void composer.flush();
  }
  await vi.advanceTimersByTimeAsync(1000);
  expect(drafts()).toEqual([
    ["saveDraft", null, "H"],
    ["saveDraft", null, "Hello"],
  ]);
});

test("a message is sent after its draft was saved", async () => {
  const { app, host } = await start();
  slowDrafts(host);
  app.composer.write("Hello");
  await vi.advanceTimersByTimeAsync(450);
  const sent = app.sending.send();
  await vi.advanceTimersByTimeAsync(1000);
  await sent;
  const verbs = host.calls.map(([verb]) => verb).filter((verb) => /^(saveDraft|send)$/u.test(verb));
  expect(verbs).toEqual(["saveDraft", "send"]);
});

test("the box gets the focus only once no drawer covers it", () => {
  const { composer, layout } = stage();
  layout.narrow = true;
  layout.showSidebar();
  composer.focus();
  expect([layout.drawerShown, composer.focusRequests]).toEqual([false, 1]);
  layout.narrow = false;
  composer.focus();
  expect(layout.sidebarShown).toBe(true);
});
