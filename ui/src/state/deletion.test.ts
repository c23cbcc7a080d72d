import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deletion } from "./deletion";
import { navigate } from "./navigation.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

type Stage = Awaited<ReturnType<typeof navigate>> & { deletion: Deletion };

/** The first chat is open. */
async function stage(): Promise<Stage> {
  const parts = await navigate();
  await parts.navigation.open(parts.first.id);
  return { ...parts, deletion: new Deletion(parts.host, parts) };
}

test("deleting another chat leaves the open one", async () => {
  const { chats, conversation, deletion, first, second } = await stage();
  await deletion.remove([second]);
  expect(chats.find(second.id)).toBeUndefined();
  expect([conversation.chat, deletion.removed]).toEqual([first.id, null]);
});

test("deleting the open chat leaves an empty window", async () => {
  const { composer, conversation, deletion, first, second } = await stage();
  composer.write("half a message");
  expect(conversation.entries.length).toBeGreaterThan(0);
  await deletion.remove([second, first]);
  expect([conversation.chat, conversation.entries, composer.text]).toEqual([null, [], ""]);
  expect(deletion.removed).toBe(first.id);
});

test("a chat of the bin that is read is left before it is deleted for good", async () => {
  const { conversation, current, deletion, first, list, navigation } = await stage();
  await deletion.remove([first]);
  await list.show("bin");
  await navigation.open(first.id);
  expect(current.readOnly).toBe(true);
  await deletion.deleteForGood(list.bin);
  expect([conversation.chat, list.bin, list.view]).toEqual([null, [], "bin"]);
});

test("a message is deleted and restored, but not while an answer is written", async () => {
  const { conversation, deletion, list, notices } = await stage();
  const { lastAnswer } = conversation;
  if (!lastAnswer) throw new Error("no answer");
  const all = conversation.entries.length;
  conversation.writing = true;
  await deletion.deleteMessage(lastAnswer);
  expect(conversation.entries).toHaveLength(all);
  conversation.writing = false;
  await deletion.deleteMessage(lastAnswer);
  expect(conversation.entries).toHaveLength(all - 1);
  expect(notices.list.at(-1)?.text).toBe("Deleted the answer");
  await list.show("bin");
  const [deleted] = list.deletedMessages;
  if (!deleted) throw new Error("nothing is deleted");
  await deletion.restoreMessage(deleted);
  expect(conversation.entries).toHaveLength(all);
  expect([list.deletedMessages, notices.list.at(-1)?.text]).toEqual([[], "Restored an answer"]);
});
