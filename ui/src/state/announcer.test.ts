import { expect, test } from "vitest";
import { Announcer } from "./announcer.svelte";

test("the answer is spoken a sentence at a time", () => {
  const announcer = new Announcer();
  announcer.hear("It weighs 5.");
  expect(announcer.spoken).toBe("");
  announcer.hear("5 grams. Nobody");
  expect(announcer.spoken).toBe("It weighs 5.5 grams.");
  announcer.hear(" believes");
  expect(announcer.spoken).toBe("It weighs 5.5 grams.");
  announcer.finish("Stopped.");
  expect(announcer.spoken).toBe("Nobody believes Stopped.");
});

test("marks of Markdown are not read out", () => {
  const announcer = new Announcer();
  announcer.hear("## A *small* `bird`.\n\nThen");
  expect(announcer.spoken).toBe("A small bird.");
});
