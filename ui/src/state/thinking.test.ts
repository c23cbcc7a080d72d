import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { big, bundledModel, loading, ready, stats } from "../host/fake/library";
import { Conversation } from "./conversation.svelte";
import { Model } from "./model.svelte";
import { Notices } from "./notices.svelte";
import { Thinking } from "./thinking.svelte";

function stage(): { thinking: Thinking; model: Model; conversation: Conversation } {
  const host = new FakeHost();
  const notices = new Notices();
  const model = new Model(host, notices);
  const conversation = new Conversation(host, notices);
  return { thinking: new Thinking(model, conversation), model, conversation };
}

test("only a model that is open and cannot think turns the switch off", () => {
  const { thinking, model } = stage();
  model.take(loading(bundledModel, 0.5));
  expect([thinking.possible, thinking.on]).toEqual([true, true]);
  model.take(ready(bundledModel));
  expect([thinking.possible, thinking.on, thinking.wanted]).toEqual([false, false, true]);
  model.take(ready(big));
  expect([thinking.possible, thinking.on]).toEqual([true, true]);
  thinking.wanted = false;
  expect([thinking.possible, thinking.on]).toEqual([true, false]);
});

test("the other mode has its cost in a chat that was answered", async () => {
  const { thinking, model, conversation } = stage();
  model.take(ready(big));
  thinking.wanted = false;
  expect(thinking.reread).toBeNull();
  await conversation.send("Tell me a story", true);
  const { lastAnswer } = conversation;
  if (!lastAnswer) throw new Error("no answer");
  lastAnswer.stats = { ...stats, promptTokens: 900, tokens: 300, thinkingTokens: 200, model: "" };
  expect(thinking.reread).toEqual({ tokens: 1000, seconds: null });
  thinking.wanted = true;
  expect(thinking.reread).toBeNull();
});
