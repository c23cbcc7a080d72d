import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { PartKind } from "../host/host";
import { FakeHost, type Script } from "../host/fake/fake";
import { textParts } from "../host/parts";
import { Conversation } from "./conversation.svelte";
import type { Entry } from "./entry.svelte";
import { Notices } from "./notices.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function stage(script: Script = {}): {
  host: FakeHost;
  conversation: Conversation;
  notices: Notices;
} {
  const host = new FakeHost({ filled: false, readingMs: 100, rate: 200, ...script });
  const notices = new Notices();
  const conversation = new Conversation(host, notices);
  void host.subscribe((event) => {
    if ("chat" in event && event.type !== "presetChosen") conversation.receive(event);
  });
  return { host, conversation, notices };
}

const untilDone = (): Promise<unknown> => vi.advanceTimersByTimeAsync(20_000);

test("a message is sent, thought about, answered and ended", async () => {
  const { conversation } = stage();
  await conversation.send("What is Goldcrest?", true);
  expect(conversation.entries.map((entry) => entry.role)).toEqual(["user", "assistant"]);
  const answer = conversation.last;
  expect(answer?.stage.name).toBe("waiting");

  await vi.advanceTimersByTimeAsync(60);
  expect(answer?.stage).toMatchObject({ name: "reading", total: 2040 });
  await vi.advanceTimersByTimeAsync(60);
  expect(answer?.pondering).toBe(true);
  await untilDone();
  expect(answer?.state).toBe("done");
  expect(answer?.text).toMatch(/^Goldcrest is a desktop chat app.*machine\.$/u);
  expect(answer?.thinking).toMatch(/^They ask/u);
  expect(answer?.stats?.tokens).toBeGreaterThan(20);
  expect(conversation.writing).toBe(false);
});

/** Last visible message. */
function lastOf({ last }: Conversation): Entry {
  if (!last) throw new Error("no messages");
  return last;
}

test("a delta that is already there changes nothing; a missing one opens the chat again", async () => {
  const { host, conversation } = stage();
  await conversation.send("What is Goldcrest?", false);
  await vi.advanceTimersByTimeAsync(300);
  const { last, chat } = conversation;
  if (!last || chat === null) throw new Error("no answer");
  const before = last.text;
  const delta = {
    type: "delta",
    chat,
    message: last.id,
    tokens: 1,
    tokensPerSecond: 1,
  } as const;
  const open = vi.spyOn(host, "openChat");
  const newest = host.library.find(last.id)?.message.seq ?? 0;
  for (const seq of [1, newest]) host.emit({ ...delta, seq, parts: textParts("again") });
  expect(last.text).toBe(before);
  expect(open).not.toHaveBeenCalled();

  host.emit({ ...delta, seq: 1000, parts: textParts("too early") });
  await vi.advanceTimersByTimeAsync(1);
  expect(open).toHaveBeenCalledWith(chat);
  expect(last.text).not.toContain("too early");
  await untilDone();
  expect(conversation.last?.text).toMatch(/machine\.$/u);
});

test("a missing delta does not take away the answer to a request that is under way", async () => {
  const { host, conversation } = stage();
  await conversation.send("What is Goldcrest?", false);
  await untilDone();
  const { last, chat } = conversation;
  if (!last || chat === null) throw new Error("no answer");
  const regenerate = host.regenerate.bind(host);
  host.regenerate = async (...given) => {
    const view = await regenerate(...given);
    await new Promise((resolve) => setTimeout(resolve, 100));
    return view;
  };
  const regenerated = conversation.regenerate(last, false);
  const parts = textParts("too early");
  const gap = { seq: 1000, parts, tokens: 1, tokensPerSecond: 1 };
  host.emit({ type: "delta", chat, message: last.id, ...gap });
  await vi.advanceTimersByTimeAsync(200);
  expect(await regenerated).toBe(true);
});

test("events that overtake the answer to the request are not lost", async () => {
  const { host, conversation } = stage();
  const send = host.send.bind(host);
  host.send = async (...given) => {
    const view = await send(...given);
    await new Promise((resolve) => setTimeout(resolve, 30_000));
    return view;
  };
  void conversation.send("What is Goldcrest?", false);
  await vi.advanceTimersByTimeAsync(30_001);
  expect(conversation.last?.state).toBe("done");
  expect(conversation.last?.text).toMatch(/machine\.$/u);
});

test("who opens another chat meanwhile stays there", async () => {
  const { host, conversation } = stage({ filled: true });
  const [first, second] = [...host.library.chats.keys()];
  if (first === undefined || second === undefined) throw new Error("no chats");
  const openChat = host.openChat.bind(host);
  host.openChat = async (id) => {
    if (id === first) await new Promise((resolve) => setTimeout(resolve, 1000));
    return openChat(id);
  };
  void conversation.open(first);
  await conversation.open(second);
  await vi.advanceTimersByTimeAsync(2000);
  expect(conversation.chat).toBe(second);
  expect(conversation.busy).toBe(false);
});

test("a chat that is opened while its answer is written can be stopped", async () => {
  const { host, conversation } = stage();
  const { chat } = await host.send(null, "Tell me a story", false);
  await conversation.open(chat.id);
  expect(conversation.writing).toBe(true);
  await conversation.stop();
  expect(conversation.last?.state).toBe("stopped");
});

test("a second request waits for the first", async () => {
  const { host, conversation } = stage();
  await conversation.send("Tell me a story", false);
  await untilDone();
  const answer = lastOf(conversation);
  const regenerate = vi.spyOn(host, "regenerate");
  const first = conversation.regenerate(answer, false);
  expect(await conversation.regenerate(answer, false)).toBe(false);
  expect(await first).toBe(true);
  expect(regenerate).toHaveBeenCalledTimes(1);
});

test("a refused message changes nothing and says why", async () => {
  const { conversation, notices } = stage();
  expect(await conversation.send("please refuse this", false)).toBeNull();
  expect(conversation.entries).toEqual([]);
  expect(notices.list[0]?.text).toContain("40,120 tokens");
});

test("stop keeps what is there, and continue goes on from it", async () => {
  const { conversation } = stage();
  await conversation.send("Tell me a story", false);
  await vi.advanceTimersByTimeAsync(300);
  await conversation.stop();
  const { last } = conversation;
  expect(last?.state).toBe("stopped");
  const kept = last?.text ?? "";
  expect(kept).not.toBe("");
  await untilDone();
  expect(last?.text).toBe(kept);

  await conversation.continue(lastOf(conversation));
  expect(conversation.last).toBe(last);
  await untilDone();
  expect(last?.text.startsWith(kept)).toBe(true);
  expect(last?.state).toBe("done");
});

test("regenerate makes a version beside the first, and one can turn back", async () => {
  const { conversation } = stage();
  await conversation.send("Tell me a story", false);
  await untilDone();
  const first = lastOf(conversation);
  await conversation.regenerate(first, true);
  await untilDone();
  const second = lastOf(conversation);
  expect(second.id).not.toBe(first.id);
  expect([second.place, second.siblings.length]).toEqual([2, 2]);
  expect(await conversation.turn(second, -1)).toBe(true);
  expect(lastOf(conversation).id).toBe(first.id);
  expect(await conversation.turn(lastOf(conversation), -1)).toBe(false);
});

test("an edited question is a version of its own, with an answer when it is asked for", async () => {
  const { conversation } = stage();
  await conversation.send("Tell me a story", false);
  await untilDone();
  const [question] = conversation.entries;
  if (!question) throw new Error("no question");
  await conversation.edit(question, "What is Goldcrest?", true);
  await untilDone();
  expect(conversation.entries.map((entry) => entry.text)[0]).toBe("What is Goldcrest?");
  expect(conversation.entries[0]?.siblings).toHaveLength(2);
  expect(conversation.last?.text).toMatch(/^Goldcrest is/u);
  expect(conversation.last?.thinking).not.toBe("");
  const [edited] = conversation.entries;
  if (edited) await conversation.edit(edited, "Tell me a poem", false);
  await untilDone();
  expect(conversation.last?.thinking).toBe("");
  expect(conversation.entries).toHaveLength(2);
  const [third] = conversation.entries;
  if (third) await conversation.edit(third, "Kept as it is", null);
  expect(conversation.entries.map((entry) => entry.text)).toEqual(["Kept as it is"]);
});

test("an answer that fills the context is not to be continued", async () => {
  const { conversation, host } = stage();
  const view = await host.send(null, "a limit please", false);
  await conversation.open(view.chat.id);
  await untilDone();
  expect(conversation.last).toMatchObject({ state: "limit", canGoOn: true });
  const answer = view.messages[1];
  expect(answer).toBeDefined();
  const error = { code: "answer-full" as const, message: "The answer fills the context." };
  if (answer) {
    const message = { ...answer, state: "failed" as const, error };
    host.emit({ type: "ended", chat: view.chat.id, message });
  }
  expect(conversation.last).toMatchObject({ state: "failed", canGoOn: false });
});

test("failure, interruption and limit are different states", async () => {
  for (const [word, state] of [
    ["fail", "failed"],
    ["crash", "interrupted"],
    ["limit", "limit"],
  ]) {
    const { conversation } = stage();
    await conversation.send(`a ${word} please`, false);
    await untilDone();
    expect(conversation.last?.state).toBe(state);
    expect(conversation.last?.error !== null).toBe(state === "failed");
  }
});

test("an answer in another chat goes on without a word here", async () => {
  const { host, conversation } = stage();
  await conversation.send("Tell me a story", false);
  const writing = conversation.chat;
  conversation.editing = lastOf(conversation).id;
  conversation.clear();
  expect([conversation.writing, conversation.editing]).toEqual([false, null]);
  if (writing === null) throw new Error("no chat");
  await host.renameChat(writing, "A story");
  expect(conversation.writing).toBe(false);
  await untilDone();
  expect(conversation.entries).toEqual([]);
  await conversation.open(writing);
  expect(conversation.last?.state).toBe("done");
});

test("a found message on another branch is shown", async () => {
  const { host, conversation } = stage();
  await conversation.send("Tell me a story", false);
  await untilDone();
  const first = lastOf(conversation);
  await conversation.regenerate(first, false);
  await untilDone();
  expect(lastOf(conversation).id).not.toBe(first.id);
  const chat = conversation.chat;
  if (chat === null) throw new Error("no chat");
  await conversation.open(chat, first.id);
  expect(lastOf(conversation).id).toBe(first.id);
  expect(conversation.sought).toBe(first.id);
  await conversation.regenerate(first, false);
  expect(conversation.sought).toBeNull();
  expect(host.library.chats.size).toBe(1);
});

test("a hit unfolds the part of its kind, or else the first part with its words", async () => {
  const { host, conversation } = stage({ filled: true });
  const [chat] = host.library.chats.values();
  const answer = chat?.messages.at(-1);
  if (!chat || !answer) throw new Error("no answer");
  answer.parts = [
    { kind: "thinking", text: "A wren?" },
    { kind: "text", text: "I weigh the wren." },
    { kind: "tool-call", id: "1", name: "weigh", arguments: '{"bird": "wren"}' },
    { kind: "tool-result", id: "1", text: "9 g" },
  ];
  const opened = async (...[query, kind]: [string, PartKind?]): Promise<number[]> => {
    conversation.clear();
    await conversation.open(chat.summary.id, answer.id, query, kind);
    const { last } = conversation;
    return [0, 1, 2, 3].filter((place) => last?.isUnfolded(place));
  };
  expect(await opened("wren", "tool-call")).toEqual([2]);
  expect(await opened("weigh", "tool-call")).toEqual([2]);
  expect(await opened("wren", "thinking")).toEqual([0]);
  expect(await opened("wren", "text")).toEqual([1]);
  expect(await opened("9", "tool-result")).toEqual([3]);
  expect(await opened("9", "text")).toEqual([3]);
  expect(await opened("planet", "text")).toEqual([]);
  expect(await opened("")).toEqual([]);
});

test("thinking time runs from the first thought to the first word", async () => {
  const { conversation } = stage({ rate: 20 });
  await conversation.send("What is Goldcrest?", true);
  await vi.advanceTimersByTimeAsync(500);
  const answer = conversation.last;
  expect(answer?.thinkingMs).toBeNull();
  expect(answer?.thinkingSince).not.toBeNull();
  while (answer?.pondering) await vi.advanceTimersByTimeAsync(50);
  const thought = answer?.thinkingMs ?? 0;
  expect(thought).toBeGreaterThan(300);
  await vi.advanceTimersByTimeAsync(300);
  expect(answer?.thinkingMs).toBe(thought);
});

test("an edit that was saved is not there again, even for who left meanwhile", async () => {
  const { host, conversation } = stage({ filled: true });
  const [first, second] = [...host.library.chats.keys()];
  if (first === undefined || second === undefined) throw new Error("no chats");
  await conversation.open(first);
  const [question] = conversation.entries;
  if (!question) throw new Error("no question");
  conversation.editing = question.id;
  conversation.edits.set(question.id, { text: "an edit", pastes: [] });
  const edited = conversation.edit(question, "an edit", null);
  await conversation.open(second);
  await edited;
  await conversation.open(first, question.id);
  expect(conversation.entries[0]?.id).toBe(question.id);
  expect(conversation.editing).toBeNull();
});

test("an edit that is not saved is there again when its chat is opened again", async () => {
  const { host, conversation } = stage({ filled: true });
  const [first, second] = [...host.library.chats.keys()];
  if (first === undefined || second === undefined) throw new Error("no chats");
  await conversation.open(first);
  const [question] = conversation.entries;
  if (!question) throw new Error("no question");
  conversation.editing = question.id;
  conversation.edits.set(question.id, { text: "half an edit", pastes: [] });
  await conversation.open(second);
  expect(conversation.editing).toBeNull();
  await conversation.open(first);
  expect(conversation.editing).toBe(question.id);
  expect(conversation.edits.get(question.id)?.text).toBe("half an edit");
});

test("a new question is the one that was asked, even when its answer has failed already", async () => {
  const { host, conversation } = stage();
  const send = host.send.bind(host);
  host.send = async (...message) => {
    const view = await send(...message);
    await host.stop(view.chat.id);
    return host.openChat(view.chat.id);
  };
  await conversation.send("What is Goldcrest?", false);
  expect(conversation.writing).toBe(false);
  expect(conversation.asked).toBe(conversation.lastQuestion?.id);
  const { chat } = conversation;
  conversation.clear();
  await conversation.open(chat ?? 0);
  expect(conversation.asked).toBe(null);
});

test("a chat that is read rises to no question of the chat before", async () => {
  const { conversation, host } = stage({ filled: true });
  await conversation.send("What is Goldcrest?", true);
  await untilDone();
  expect(conversation.asked).not.toBe(null);
  const other = [...host.library.chats.keys()].find((id) => id !== conversation.chat);
  await conversation.open(other ?? 0);
  expect(conversation.asked).toBe(null);
});

test("where nothing is written there is nothing to stop", async () => {
  const { conversation, host } = stage();
  await conversation.send("What is Goldcrest?", true);
  await untilDone();
  const stop = vi.spyOn(host, "stop");
  await conversation.stop();
  expect(stop).not.toHaveBeenCalled();
});

test("a request changes the entries behind the message that it is about, and no others", async () => {
  const { host, conversation } = stage();
  await conversation.send("What is Goldcrest?", false);
  await untilDone();
  await conversation.send("And what else?", false);
  await untilDone();
  const [question, answer] = conversation.entries;
  if (!question || !answer) throw new Error("no messages");
  const absorbed = vi.spyOn(question, "absorb");
  await conversation.regenerate(answer, false);
  expect(conversation.entries.length).toBe(2);
  expect(conversation.entries[0]).toBe(question);
  expect(absorbed).not.toHaveBeenCalled();
  await untilDone();
  // A message of a hidden branch reloads the chat.
  const second = lastOf(conversation);
  const opened = vi.spyOn(host, "openChat");
  conversation.entries = [];
  await conversation.turn(second, -1);
  expect(opened).toHaveBeenCalled();
  expect(conversation.entries.length).toBe(4);
});
