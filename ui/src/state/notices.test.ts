import { expect, test } from "vitest";
import { Notices } from "./notices.svelte";

const texts = (notices: Notices): string[] => notices.list.map(({ text }) => text);

test("the newest three are shown", () => {
  const notices = new Notices();
  for (const text of ["one", "two", "three", "four"]) notices.show(text);
  expect(texts(notices)).toEqual(["two", "three", "four"]);
});

test("a failure that is no answer of the host is shown in its own words", async () => {
  const notices = new Notices();
  expect(await notices.guard(Promise.reject(new Error("the channel is closed")))).toBeNull();
  expect(notices.list).toMatchObject([{ text: "Error: the channel is closed", tone: "error" }]);
});

test("a warning that is on the screen is not shown twice", () => {
  const notices = new Notices();
  notices.warn("No copy was made.");
  notices.warn("No copy was made.");
  expect(texts(notices)).toEqual(["No copy was made."]);
});

test("of several changes only the last one offers to take it back", () => {
  const notices = new Notices();
  notices.show("Something else");
  notices.changed("deleted “Birds”");
  notices.changed("moved “Trees”", "It is still here.");
  expect(texts(notices)).toEqual(["Something else", "Moved “Trees”. It is still here."]);
  notices.undone("moved “Trees”", null);
  expect(notices.list.map(({ action }) => action?.label)).toEqual([undefined, "Redo"]);
  notices.redone("moved “Trees”");
  expect(notices.list.map(({ action }) => action?.label)).toEqual([undefined, "Undo"]);
});

test("a report stays, without its button once something else has changed", () => {
  const notices = new Notices();
  notices.changed("imported 2 chats. 1 was left out.", "", true);
  expect(notices.list[0]?.action?.label).toBe("Undo");
  notices.changed("deleted “Birds”");
  expect(notices.list.map(({ text, action }) => [text, action?.label])).toEqual([
    ["Imported 2 chats. 1 was left out.", undefined],
    ["Deleted “Birds”", "Undo"],
  ]);
});

test("a notice undoes or redoes what it is about", () => {
  const done: string[] = [];
  const notices = new Notices({ undo: () => done.push("undo"), redo: () => done.push("redo") });
  const press = (): void => notices.list.at(-1)?.action?.run();
  notices.changed("deleted “Birds”");
  press();
  notices.undone("deleted “Birds”", "“Birds”");
  press();
  notices.redone("deleted “Birds”");
  press();
  expect(done).toEqual(["undo", "redo", "undo"]);
});

test("a failure that is shown elsewhere needs no notice", async () => {
  const notices = new Notices({ onfail: ({ code }) => code === "disk-full" });
  const failed = (code: string): Promise<never> => Promise.reject({ code, message: code });
  await notices.guard(failed("disk-full"));
  await notices.guard(failed("store"));
  expect(texts(notices)).toEqual(["store"]);
});
