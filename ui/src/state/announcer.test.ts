import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Announcer } from "./announcer.svelte";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** What is spoken once it had the time to gather. */
function spoken(announcer: Announcer): string {
  vi.runAllTimers();
  return announcer.spoken;
}

test("the answer is spoken a sentence at a time", () => {
  const announcer = new Announcer();
  announcer.hear("It weighs 5.");
  expect(spoken(announcer)).toBe("");
  announcer.hear("5 grams. Nobody");
  expect(spoken(announcer)).toBe("It weighs 5.5 grams.");
  announcer.hear(" believes");
  expect(spoken(announcer)).toBe("It weighs 5.5 grams.");
  announcer.finish("Stopped.");
  expect(spoken(announcer)).toBe("Nobody believes Stopped.");
});

test("marks of Markdown are not read out", () => {
  const announcer = new Announcer();
  announcer.hear("## A *small* `bird`.\n\nThen");
  expect(spoken(announcer)).toBe("A small bird.");
});

test("the break between two paragraphs does not take away what is being read out", () => {
  const announcer = new Announcer();
  announcer.hear("It crosses the sea. ");
  expect(spoken(announcer)).toBe("It crosses the sea.");
  announcer.hear("\n\n");
  expect(spoken(announcer)).toBe("It crosses the sea.");
});

test("however fast the answer comes, no sentence is lost", () => {
  const announcer = new Announcer();
  announcer.say("Thinking");
  announcer.hear("It crosses the sea. Nobody ");
  announcer.hear("believes this.");
  announcer.finish("");
  expect(spoken(announcer)).toBe("Thinking It crosses the sea. Nobody believes this.");
});
