import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deletion } from "./deletion";
import { navigate } from "./navigation.fixture";
import { UndoHistory } from "./undo-history";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

type Stage = Awaited<ReturnType<typeof navigate>> & { deletion: Deletion; history: UndoHistory };

async function stage(): Promise<Stage> {
  const parts = await navigate();
  const deletion = new Deletion(parts.host, parts);
  const flush = (): Promise<void> => parts.preferences.flush();
  return {
    ...parts,
    deletion,
    history: new UndoHistory(parts.host, { ...parts, deletion, flush }),
  };
}

test("a chat that was open when it was deleted is opened again, another one is not", async () => {
  const { conversation, deletion, first, history, navigation, notices, second } = await stage();
  await navigation.open(first.id);
  await deletion.remove([first]);
  await deletion.remove([second]);
  await history.undo();
  expect(notices.list.at(-1)?.text).toBe(`Restored “${second.title}”`);
  expect(conversation.chat).toBeNull();
  await history.undo();
  expect(conversation.chat).toBe(first.id);
});

test("a chat that comes back does not take the place of the one that is read", async () => {
  const { chats, conversation, deletion, first, history, navigation, second } = await stage();
  await navigation.open(first.id);
  await deletion.remove([first]);
  await navigation.open(second.id);
  await history.undo();
  expect(chats.find(first.id)).toBeDefined();
  expect(conversation.chat).toBe(second.id);
});

test("a copy that goes leads back to its chat", async () => {
  const { conversation, first, history, navigation } = await stage();
  await navigation.open(first.id);
  if (conversation.last) await navigation.fork(conversation.last);
  expect(conversation.chat).not.toBe(first.id);
  await history.undo();
  expect(conversation.chat).toBe(first.id);
});

test("the change that is undone is the one that was not saved yet", async () => {
  const { chats, first, history, host, notices, preferences } = await stage();
  const { temperature } = preferences.value.samplingChanges;
  await chats.rename(first.id, "Interest");
  preferences.set("temperature", 0.3);
  await history.undo();
  expect(preferences.valueOf("temperature")).toBe(temperature);
  expect(chats.find(first.id)?.title).toBe("Interest");
  await history.redo();
  expect(preferences.valueOf("temperature")).toBe(0.3);
  expect(notices.list.at(-1)?.action?.label).toBe("Undo");
  expect((await host.snapshot()).settings.samplingChanges.temperature).toBe(0.3);
});

test("where there is nothing to undo or to redo, that is said", async () => {
  const { history, notices } = await stage();
  await history.undo();
  await history.redo();
  expect(notices.list.map(({ text }) => text)).toEqual([
    "There is nothing to undo.",
    "There is nothing to redo.",
  ]);
});
