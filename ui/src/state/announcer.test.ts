import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost, type Script } from "../host/fake/fake";
import { Announcer } from "./announcer.svelte";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Content of the live region after the batching delay. */
function spoken(announcer: Announcer): string {
  vi.runAllTimers();
  return announcer.spoken;
}

test("the answer is spoken a sentence at a time", () => {
  const announcer = new Announcer();
  announcer.append("It weighs 5.");
  expect(spoken(announcer)).toBe("");
  announcer.append("5 grams. Nobody");
  expect(spoken(announcer)).toBe("It weighs 5.5 grams.");
  announcer.append(" believes");
  expect(spoken(announcer)).toBe("It weighs 5.5 grams.");
  announcer.finish("Stopped.");
  expect(spoken(announcer)).toBe("Nobody believes Stopped.");
});

test("marks of Markdown are not read out", () => {
  const announcer = new Announcer();
  announcer.append("## A *small* `bird`.\n\nThen");
  expect(spoken(announcer)).toBe("A small bird.");
});

test("a formula is spoken in signs, and not before it is whole", () => {
  const announcer = new Announcer();
  announcer.append("It is $\\frac{1}{2}$ or $x^2$. And\n\n$$\nA = P\n\\times 2\n");
  expect(spoken(announcer)).toBe("It is 1/2 or x². And");
  announcer.append("$$\n\nin the end. ");
  expect(spoken(announcer)).toBe("A = P × 2 in the end.");
});

test("nothing is said of a chat that was left", () => {
  const announcer = new Announcer();
  announcer.append("It weighs six grams. Nob");
  expect(spoken(announcer)).toBe("It weighs six grams.");
  announcer.append("ody knows. ");
  announcer.clear();
  expect(spoken(announcer)).toBe("");
  announcer.finish("");
  expect(spoken(announcer)).toBe("");
});

test("the break between two paragraphs does not take away what is being read out", () => {
  const announcer = new Announcer();
  announcer.append("It crosses the sea. ");
  expect(spoken(announcer)).toBe("It crosses the sea.");
  announcer.append("\n\n");
  expect(spoken(announcer)).toBe("It crosses the sea.");
});

test("however fast the answer comes, no sentence is lost", () => {
  const announcer = new Announcer();
  announcer.say("Thinking");
  announcer.append("It crosses the sea. Nobody ");
  announcer.append("believes this.");
  announcer.finish("");
  expect(spoken(announcer)).toBe("Thinking It crosses the sea. Nobody believes this.");
});

/** Content of the live region after each update. */
function updates(announcer: Announcer): string[] {
  const all: string[] = [];
  while (vi.getTimerCount() > 0) {
    vi.advanceTimersToNextTimer();
    all.push(announcer.spoken);
  }
  return all;
}

const floods = {
  letters: "a".repeat(100_000),
  words: "goldcrest ".repeat(10_000),
  sentences: "It crosses the sea. ".repeat(5_000),
  emoji: "\u{1F426}".repeat(50_000),
};

test.each(Object.entries(floods))(
  "the live region never holds much of an endless answer, and no word is lost: %s",
  (_, text) => {
    const announcer = new Announcer();
    const half = text.length / 2;
    for (let at = 0; at < half; at += 100) announcer.append(text.slice(at, at + 100));
    announcer.append(text.slice(half));
    announcer.finish("Stopped.");
    const all = updates(announcer);
    for (const each of all) expect(each.length).toBeLessThan(3000);
    expect(all.at(-1)).toMatch(/Stopped\.$/u);
    expect(all.join(" ").replaceAll(" ", "")).toBe(`${text.replaceAll(" ", "")}Stopped.`);
  },
);

test("words are not broken where an endless sentence is spoken in parts", () => {
  const announcer = new Announcer();
  for (let at = 0; at < 10_000; at += 7) {
    announcer.append("goldcrest ".repeat(1000).slice(at, Math.min(at + 7, 10_000)));
  }
  announcer.finish("");
  const words = updates(announcer).join(" ").split(" ");
  expect(words).toEqual(Array<string>(1000).fill("goldcrest"));
});

test("an endless answer is searched for sentences in linear work", () => {
  const work = (length: number): number => {
    let searched = 0;
    const exec = vi.spyOn(RegExp.prototype, "exec").mockImplementation(function (text: string) {
      searched += text.length;
      return null;
    });
    const announcer = new Announcer();
    for (let at = 0; at < length; at += 20) announcer.append("a".repeat(20));
    exec.mockRestore();
    return searched;
  };
  expect(work(40_000)).toBeLessThan(2.1 * work(20_000));
});

/** An announcer that follows the answers of a host. */
async function following(script: Script): Promise<{ announcer: Announcer; host: FakeHost }> {
  const host = new FakeHost({ readingMs: 50, ...script });
  const announcer = new Announcer();
  await host.subscribe((event) => {
    if (event.type === "stage" || event.type === "delta" || event.type === "ended")
      announcer.receive(event);
  });
  return { announcer, host };
}

test("thinking is announced, and a failure with its reason", async () => {
  const { announcer, host } = await following({ rate: 40 });
  await host.send(null, "please fail", true);
  const heard = new Set<string>();
  for (let step = 0; step < 100; step++) {
    await vi.advanceTimersByTimeAsync(100);
    heard.add(announcer.spoken);
  }
  const all = [...heard].join(" | ");
  expect(all).toContain("Thinking");
  expect(all).toContain("The answer failed. The device ran out of memory: 512 MB more are needed.");
});

test.each([
  ["stopped", "Stopped."],
  ["limit", "The answer reached its length limit."],
  ["interrupted", "Goldcrest closed before this answer was finished."],
  ["done", ""],
] as const)("the end of an answer is announced: %s", async (state, says) => {
  const { announcer, host } = await following({});
  const [chat] = host.library.chats.values();
  const answer = chat?.messages.at(-1);
  if (!chat || !answer) throw new Error("no answer");
  host.emit({ type: "ended", chat: chat.summary.id, message: { ...answer, state } });
  expect(spoken(announcer)).toBe(says);
});

test("a call that asks is announced once, after the text before it", async () => {
  const host = new FakeHost({ rate: 4000, readingMs: 0 });
  const announcer = new Announcer();
  const heard: string[] = [];
  await host.subscribe((event) => {
    if (event.type !== "called" && event.type !== "ended") return;
    announcer.receive(event);
    if (event.type === "called") announcer.receive(event);
  });
  announcer.append("I look");
  await host.send(null, "Tools: search", false);
  for (let wait = 0; wait < 5; wait++) {
    await vi.advanceTimersByTimeAsync(200);
    if (announcer.spoken !== heard.at(-1)) heard.push(announcer.spoken);
  }
  expect(heard.filter((words) => words !== "")).toEqual(["I look Search in chats asks to run"]);
});
