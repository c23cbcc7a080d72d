import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Message } from "../host/host";
import { FakeHost } from "../host/fake/fake";
import { textParts } from "../host/parts";
import { App } from "./app.svelte";

let app: App;

/** Opens a chat with these questions and answers. */
async function chatOf(
  ...texts: (string | { text: string; thinking: string } | Pick<Message, "parts">)[]
): Promise<Message[]> {
  const host = new FakeHost({ filled: false });
  const chat = host.library.create("Found", 0);
  const messages = texts.map((each, at) =>
    host.library.add(
      chat,
      at % 2 === 0 ? "user" : "assistant",
      typeof each === "string" ? { text: each } : each,
    ),
  );
  app = new App(host);
  await app.start();
  await app.navigation.open(chat.summary.id);
  return messages;
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1000);

async function find(query: string): Promise<string> {
  app.find.open();
  app.find.ask(query);
  await settled();
  return app.find.words;
}

it("writes a large count as all other figures", async () => {
  await chatOf("bird ".repeat(1200));
  expect(await find("bird")).toBe("1 of 1,200");
});

it("counts the matches of all messages and goes through them in both directions", async () => {
  const [first, second] = await chatOf("a bird", "no **bird**, two birds", "BIRD");
  expect(await find("bird")).toBe("1 of 4");
  expect(app.find.current).toEqual({ entry: first?.id, nth: 0, part: 0, nthInPart: 0 });
  app.find.step(1);
  app.find.step(1);
  expect(app.find.current).toEqual({ entry: second?.id, nth: 1, part: 0, nthInPart: 1 });
  expect(app.find.words).toBe("3 of 4");
  expect(app.find.spoken).toBe("3 of 4");
  app.find.step(1);
  app.find.step(1);
  expect(app.find.words).toBe("1 of 4");
  app.find.step(-1);
  expect(app.find.words).toBe("4 of 4");
});

it("goes on from where the view stands when the words are not among the messages any more", async () => {
  const [first, second] = await chatOf("a bird", "two birds", "BIRD");
  app.find.top = () => second?.id ?? null;
  expect(await find("bird")).toBe("2 of 3");
  app.find.current = null;
  app.find.step(1);
  expect(app.find.current).toEqual({ entry: second?.id, nth: 0, part: 0, nthInPart: 0 });
  expect(first).toBeDefined();
});

it("begins where the view stands, and goes on from there with each character", async () => {
  const [first, , third] = await chatOf("bird", "bind", "bird and birch");
  app.find.top = () => third?.id ?? null;
  expect(await find("b")).toBe("3 of 4");
  expect(await find("bi")).toBe("3 of 4");
  app.find.step(1);
  expect(await find("bir")).toBe("3 of 3");
  expect(app.find.current?.entry).toBe(third?.id);
  expect(await find("birch")).toBe("1 of 1");
  expect(await find("bird")).toBe("1 of 2");
  expect(app.find.current?.entry).toBe(first?.id);
});

it("says when there is nothing, and nothing of no words", async () => {
  await chatOf("a bird", "yes");
  expect(await find("planet")).toBe("Not found");
  expect(app.find.current).toBeNull();
  app.find.step(1);
  expect(app.find.current).toBeNull();
  expect(await find("  ")).toBe("");
});

it("unfolds the thoughts and the long question that it goes to", async () => {
  await chatOf("x ".repeat(2000) + "bird", { text: "a bird", thinking: "a bird, they say" });
  expect(await find("bird")).toBe("1 of 3");
  const [question, answer] = app.conversation.entries;
  expect(question?.isUnfolded(0)).toBe(true);
  expect(answer?.isUnfolded(0)).toBe(false);
  app.find.step(1);
  expect(answer?.isUnfolded(0)).toBe(true);
});

it("unfolds the call and the result that it goes to", async () => {
  const parts: Message["parts"] = [
    ...textParts("I look."),
    { kind: "tool-call", id: "1", name: "find_bird", arguments: "{}" },
    { kind: "tool-result", id: "1", text: "A wren." },
    ...textParts("So it is."),
  ];
  await chatOf("What is it?", { parts });
  const answer = app.conversation.entries.at(-1);
  const unfolded = (): boolean[] =>
    parts.map((_, place) => answer?.isUnfolded(place) ?? false).slice(1, 3);
  expect(await find("bird")).toBe("1 of 1");
  expect(unfolded()).toEqual([true, false]);
  expect(await find("wren")).toBe("1 of 1");
  expect(app.find.current).toEqual({ entry: answer?.id, nth: 0, part: 2, nthInPart: 0 });
  expect(unfolded()).toEqual([true, true]);
});

it("counts an answer that grows, and stays where the reader is", async () => {
  await chatOf("a bird", "a bird");
  await find("bird");
  const answer = app.conversation.entries.at(-1);
  if (!answer) throw new Error("no answer");
  const { moves } = app.find;
  answer.state = "writing";
  for (let delta = 0; delta < 10; delta++) {
    answer.parts = textParts(`${answer.text} and a **bird**`);
    app.find.grown();
  }
  expect(app.find.words).toBe("1 of 2");
  await settled();
  expect(app.find.words).toBe("1 of 12");
  expect(app.find.moves).toBe(moves);
  expect(app.find.spoken).toBe("1 of 2");
});

it("skips a message while it is edited", async () => {
  const [first] = await chatOf("a bird", "a bird");
  app.conversation.editing = first?.id ?? null;
  expect(await find("bird")).toBe("1 of 1");
  app.conversation.editing = null;
  await app.find.again();
  expect(app.find.words).toBe("2 of 2");
});

it("ends when another chat is opened, and not when the same one is", async () => {
  await chatOf("a bird", "yes");
  await find("bird");
  await app.navigation.open(app.conversation.chat ?? 0);
  expect(app.find.shown).toBe(true);
  app.navigation.newChat();
  expect(app.find.shown).toBe(false);
  expect(app.find.current).toBeNull();
  expect(app.find.total).toBe(0);
});

it("a search that another one overtakes changes nothing any more", async () => {
  await chatOf(...Array.from({ length: 400 }, () => "A **bird** and a plan.\n\n".repeat(40)));
  app.find.open();
  app.find.ask("bird");
  expect(app.find.searching).toBe(true);
  app.find.ask("plan");
  app.find.close();
  await settled();
  expect(app.find.searching).toBe(false);
  expect(app.find.total).toBe(0);
  expect(app.find.current).toBeNull();
});
