import { expect, test } from "vitest";
import { TextHistory, type FieldState } from "./text-history";

const at = (text: string, start = text.length, end = start): FieldState => ({ text, start, end });

/** Simulates typing into a field, one character every 50 ms. */
class Box {
  now = at("");
  time = 0;
  readonly history = new TextHistory();

  edit(after: FieldState, inputType: string): void {
    this.time += 50;
    this.history.record(this.now, after, inputType, this.time);
    this.now = after;
  }

  type(text: string): void {
    for (const character of text) this.edit(at(this.now.text + character), "insertText");
  }

  step(step: "undo" | "redo"): string | undefined {
    const state = this.history.step(step, this.now);
    if (state) this.now = state;
    return state?.text;
  }
}

test("words are taken back one by one, and come again", () => {
  const box = new Box();
  box.type("hello wide world");
  expect(box.step("undo")).toBe("hello wide ");
  expect(box.step("undo")).toBe("hello ");
  expect(box.step("undo")).toBe("");
  expect(box.step("undo")).toBeUndefined();
  expect(box.step("redo")).toBe("hello ");
  expect(box.step("redo")).toBe("hello wide ");
  box.type("web");
  expect(box.step("redo")).toBeUndefined();
});

test("a text that was deleted comes back as a whole", () => {
  const box = new Box();
  box.type("a draft");
  box.now = at("a draft", 0, 7);
  box.edit(at(""), "deleteContentBackward");
  expect(box.step("undo")).toBe("a draft");
  expect(box.now.end).toBe(7);
});

test("a pause, a moved cursor and another kind of edit begin a step", () => {
  const box = new Box();
  box.type("one");
  box.time += 2000;
  box.type("two");
  box.edit(at("onetw"), "deleteContentBackward");
  box.now = at("onetw", 0);
  box.edit(at("Xonetw", 1), "insertText");
  expect(box.step("undo")).toBe("onetw");
  expect(box.step("undo")).toBe("onetwo");
  expect(box.step("undo")).toBe("one");
});

test("a word moved by dragging goes back in one step", () => {
  const box = new Box();
  box.type("ab");
  box.edit(at("b", 0), "deleteByDrag");
  box.edit(at("ba", 1, 2), "insertFromDrop");
  expect(box.step("undo")).toBe("ab");
});

test("a text that the program has set has nothing to take back", () => {
  const box = new Box();
  box.type("sent");
  box.now = at("");
  expect(box.step("undo")).toBeUndefined();
  box.type("next");
  expect(box.step("undo")).toBe("");
  expect(box.step("undo")).toBeUndefined();
});

test("no more than a hundred steps are kept", () => {
  const box = new Box();
  for (let step = 0; step < 150; step++) box.edit(at(box.now.text + "x"), "insertFromPaste");
  let steps = 0;
  while (box.step("undo") !== undefined) steps += 1;
  expect(steps).toBe(100);
});
