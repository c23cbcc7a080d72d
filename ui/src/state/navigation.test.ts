import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { navigate } from "./navigation.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("opening the chat that is open keeps what was just typed", async () => {
  const { composer, first, navigation } = await navigate();
  await navigation.open(first.id);
  composer.write("Half a sen");
  await navigation.open(first.id);
  expect(composer.text).toBe("Half a sen");
});

test("what belongs to one chat is not shown in the next", async () => {
  const { composer, conversation, current, find, first, navigation, second } = await navigate();
  for (const leave of [() => navigation.open(second.id), () => navigation.newChat()]) {
    await navigation.open(first.id);
    find.open();
    current.renaming = true;
    composer.write("for the first chat");
    await leave();
    expect([find.shown, composer.text]).toEqual([false, ""]);
    await navigation.open(first.id);
    expect([current.renaming, composer.text]).toEqual([false, "for the first chat"]);
  }
  expect(conversation.chat).toBe(first.id);
});

test("a hit of a search is the open one for as long as its chat is", async () => {
  const { first, navigation, search } = await navigate();
  await navigation.open(first.id, null, "word");
  expect(search.opened).toEqual({ chat: first.id, message: null });
  navigation.newChat();
  expect(search.opened).toBe(null);
});

test("the thinking switch follows a chat's last answer, or what a new chat begins with", async () => {
  const { conversation, first, navigation, preferences, second, thinking } = await navigate();
  await navigation.open(first.id);
  expect(thinking.wanted).toBe(true);
  await conversation.send("Tell me a story", false);
  await navigation.open(second.id);
  expect(thinking.wanted).toBe(true);
  await navigation.open(first.id);
  expect(thinking.wanted).toBe(false);
  navigation.newChat();
  expect(thinking.wanted).toBe(true);
  await navigation.open(first.id);
  preferences.change({ thinking: false });
  navigation.newChat();
  expect(thinking.wanted).toBe(false);
});

test("a chat that the host removes is left, another one is not", async () => {
  const { chats, conversation, first, host, navigation, second } = await navigate();
  await navigation.open(first.id);
  host.emit({ type: "chatsRemoved", chats: [second.id] });
  expect(conversation.chat).toBe(first.id);
  host.emit({ type: "chatsRemoved", chats: [first.id] });
  expect(conversation.chat).toBeNull();
  expect(chats.find(first.id)).toBeUndefined();
});

test("a temporary chat that is kept is not left in between", async () => {
  const { conversation, current, host, navigation } = await navigate();
  await navigation.newTemporaryChat();
  await conversation.send("Tell me a story", false);
  await vi.advanceTimersByTimeAsync(60_000);
  const { chat } = current;
  if (!chat) throw new Error("no chat");
  const left = vi.spyOn(conversation, "lose");
  await navigation.keep(chat);
  expect(left.mock.calls.flat(2), "the host has removed the temporary id").not.toContain(chat.id);
  expect(left).toHaveBeenCalled();
  expect(current.chat).toMatchObject({ temporary: false, title: "Tell me a story" });
  host.emit({ type: "chatsRemoved", chats: [current.chat?.id ?? 0] });
  expect(conversation.chat).toBeNull();
});

test("starting over leaves a notice that leads back", async () => {
  const { conversation, first, list, navigation, notices } = await navigate();
  await navigation.open(first.id);
  await list.show("archive");
  navigation.startOver();
  expect([conversation.chat, list.view]).toEqual([null, "chats"]);
  const [notice] = notices.list;
  expect(notice?.text).toBe(`“${first.title}” stays in the list.`);
  notice?.action?.run();
  await vi.advanceTimersByTimeAsync(0);
  expect(conversation.chat).toBe(first.id);
});
