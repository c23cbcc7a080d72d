import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { big, ready } from "../host/fake/library";
import type { Script } from "../host/fake/fake";
import { App } from "./app.svelte";
import { start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** Requests a count, as the gauge does after each change. */
function beginToCount(app: App): void {
  const { text, pastes } = app.composer;
  app.context.count({ chat: app.conversation.chat, text, pastes, thinking: app.thinking.on });
}

async function count(app: App): Promise<void> {
  beginToCount(app);
  await vi.advanceTimersByTimeAsync(200);
}

/** Opens a chat, with a model of a small context. */
async function small(contextLength: number, script: Script = {}): Promise<App> {
  const model = ready({ ...big, contextLength });
  const { app } = await start({ model, rate: 4000, ...script });
  const chat = app.chats.list.find(({ title }) => title.includes("bird"));
  if (!chat) throw new Error("no chat");
  await app.navigation.open(chat.id);
  await count(app);
  return app;
}

const tokensOf = (app: App): Record<string, number> =>
  Object.fromEntries(app.context.parts.map(({ key, tokens }) => [key, tokens]));

test("a new chat has instructions, and what is written of its first message", async () => {
  const { app } = await start();
  await count(app);
  expect(tokensOf(app)).toMatchObject({ instructions: 220, chat: 0, message: 0, answer: 1024 });
  app.composer.write("x".repeat(400));
  await count(app);
  expect(tokensOf(app)).toMatchObject({ message: 100 });
  expect(app.context.used).toBe(320);
  const parts = app.context.parts.reduce((sum, { tokens }) => sum + tokens, 0);
  expect(parts).toBe(32_768);
});

test("it grows with the answer that is written, between two counts", async () => {
  const { app } = await start({ rate: 8 });
  app.composer.write("A long answer of 200 tokens");
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(100);
  await count(app);
  const before = app.context.used;
  expect(app.conversation.last?.pondering).toBe(true);
  const thought = tokensOf(app)["thinking"] ?? 0;
  await vi.advanceTimersByTimeAsync(900);
  expect(app.context.used).toBeGreaterThan(before);
  expect(tokensOf(app)["thinking"]).toBeGreaterThan(thought);
  expect(app.context.cached).toBe(app.context.used);
});

test("what is typed fast is counted once, and pasted texts once for all", async () => {
  const { app, host } = await start();
  const asked = vi.spyOn(host, "contextUsage");
  const counted = vi.spyOn(host, "countTokens");
  for (const text of ["a", "ab", "abc"]) {
    app.composer.write(text);
    app.context.count({ chat: null, text, pastes: [], thinking: true });
    await vi.advanceTimersByTimeAsync(50);
  }
  await vi.advanceTimersByTimeAsync(200);
  expect(asked).toHaveBeenCalledTimes(1);
  app.composer.paste("x".repeat(40_000));
  await count(app);
  await count(app);
  expect(counted).toHaveBeenCalledTimes(1);
  expect(app.context.usage?.pasted).toBe(10_000);
  expect(app.context.tokensOf(app.composer.pastes[0] ?? "")).toBe(10_000);
});

test("while no model is loaded the last counts stay, and where there are none nothing is said", async () => {
  const { app, host } = await start();
  await count(app);
  expect(app.context.usage).not.toBe(null);
  await host.ejectModel();
  app.composer.write("a draft");
  await count(app);
  expect(app.context.used).toBe(220);
  const { app: fresh } = await start({ model: { status: { state: "none" }, error: null } });
  await count(fresh);
  expect(fresh.context.usage).toBe(null);
  expect(fresh.context.parts).toEqual([]);
  expect(fresh.context.notice).toBe(null);
});

test("a chat that is nearly full says so, until that is put aside and something worse comes", async () => {
  const app = await small(590);
  const { notice } = app.context;
  expect(notice?.kind).toBe("nearly-full");
  app.context.dismiss();
  expect(app.context.notice).toBe(null);
  await count(app);
  expect(app.context.notice).toBe(null);

  app.composer.write("x".repeat(400));
  await count(app);
  expect(app.context.notice).toEqual({ kind: "leaves-out", messages: 2 });
  app.composer.write("x".repeat(4000));
  await count(app);
  expect(app.context.notice).toMatchObject({ kind: "too-long", needed: 1000 });
  app.context.dismiss();
  expect(app.context.notice?.kind).toBe("too-long");
});

test("a chat with room says nothing", async () => {
  const app = await small(4096);
  expect(app.context.notice?.kind).not.toBe("leaves-out");
  expect(await app.context.refusal()).toBe(null);
});

test("an answer that was not given all says where the model began to read, and all is read again", async () => {
  const app = await small(590);
  app.composer.write("x".repeat(400));
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(10_000);
  const { conversation } = app;
  const answer = conversation.lastAnswer;
  expect(answer?.omitted?.messages).toBe(2);
  expect(conversation.reading).toEqual({ message: 2, thinking: 2 });
  // Not debounced.
  beginToCount(app);
  expect(await app.context.refusal()).toMatch(
    /^That needs [\d,]+ tokens; there is room for 443\.$/u,
  );
  expect(app.context.notice?.kind).not.toBe("leaves-out");

  await conversation.showReading();
  expect(conversation.sought).toBe(conversation.entries[2]?.id);
  if (answer) await conversation.readAgain(answer);
  expect(answer?.readFrom?.again).toBe(true);
  expect(conversation.reading).toBe(null);
  await app.history.undo();
  expect(conversation.reading).toEqual({ message: 2, thinking: 2 });
});

test("a new chat begins with a summary of this one, and knows where it comes from", async () => {
  const app = await small(590);
  const { chat } = app.conversation;
  await app.navigation.startWithSummary();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(app.conversation.chat).not.toBe(chat);
  expect(app.current.chat?.continues).toBe(chat);
  expect(app.conversation.entries.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(app.conversation.last?.thinks).toBe(false);
  await app.history.undo();
  expect(app.conversation.chat).toBe(chat);
  expect(app.chats.find(chat)).toBeDefined();
});
