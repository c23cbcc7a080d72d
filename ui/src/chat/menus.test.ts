import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { App } from "../state/app.svelte";
import type { Entry } from "../state/entry.svelte";
import { start } from "../state/started.fixture";
import { messageMenu, regenerateMenu } from "./menus";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A chat with an answered question. */
async function asked(app: App, text = "Tell me a story"): Promise<Entry> {
  app.composer.write(text);
  await app.sending.send();
  await vi.advanceTimersByTimeAsync(20_000);
  const { last } = app.conversation;
  if (!last || last.writing) throw new Error("not answered");
  return last;
}

const labels = (items: { label: string }[]): string[] => items.map(({ label }) => label);

test("an answer can be asked for shorter, longer, and in the other mode", async () => {
  const { app, host } = await start();
  const answer = await asked(app);
  const ways = regenerateMenu(app, answer);
  expect(labels(ways)).toEqual([
    "Regenerate",
    "Shorter",
    "Longer",
    "Without thinking",
    "With thinking",
  ]);
  for (const way of ways) {
    way.run();
    await vi.advanceTimersByTimeAsync(20_000);
  }
  const made = host.calls.filter(([verb]) => verb === "regenerate");
  expect(made.map((call) => call.slice(2))).toEqual([
    [true, null],
    [true, "shorter"],
    [true, "longer"],
    [false, null],
    [true, null],
  ]);
  expect(app.conversation.last?.siblings).toHaveLength(6);
});

test.each([
  ["assistant", ["Regenerate", "Shorter", "Longer", "Without thinking", "With thinking"], "answer"],
  ["system", [], "message"],
  ["tool", [], "message"],
] as const)("the menu of a message of the %s", async (role, ways, noun) => {
  const { app, host } = await start();
  const [chat] = host.library.chats.values();
  if (!chat) throw new Error("no chat");
  for (const message of chat.messages) message.role = role;
  await app.navigation.open(chat.summary.id);
  const [first] = app.conversation.entries;
  expect(first && labels(messageMenu(app, first).flat())).toEqual([
    ...ways,
    `Copy ${noun}`,
    `Edit ${noun}`,
    ...(role === "assistant" ? ["Continue"] : []),
    "New chat from here",
    `Delete ${noun} and what follows`,
  ]);
});

test("while an answer is written there is nothing to choose of it, and nothing of others is allowed", async () => {
  const { app } = await start();
  const answer = await asked(app);
  app.composer.write("And another");
  await app.sending.send();
  const { last } = app.conversation;
  expect(last && messageMenu(app, last)).toEqual([]);
  const items = messageMenu(app, answer).flat();
  const allowed = items.filter(({ disabled }) => !disabled);
  expect(labels(allowed)).toEqual(["Copy answer"]);
});
