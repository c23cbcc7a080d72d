import { expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Chats } from "./chats.svelte";
import { Conversation } from "./conversation.svelte";
import { CurrentChat } from "./current-chat.svelte";
import { Folders } from "./folders.svelte";
import { ChatList } from "./list.svelte";
import { Notices } from "./notices.svelte";
import { chat } from "./rows.fixture";

type Stage = {
  host: FakeHost;
  chats: Chats;
  conversation: Conversation;
  current: CurrentChat;
  list: ChatList;
};

/** Two chats, of which the first is open. */
function stage(): Stage {
  const host = new FakeHost();
  const notices = new Notices();
  const chats = new Chats(host, notices);
  const list = new ChatList(host, notices, chats, new Folders(host, notices));
  const conversation = new Conversation(host, notices);
  chats.take([chat(1, 20), chat(2, 10)]);
  conversation.chat = 1;
  return { host, chats, conversation, current: new CurrentChat(conversation, chats, list), list };
}

test("a chat of the bin is read only, and has no title to change", () => {
  const { chats, conversation, current, list } = stage();
  expect([current.chat?.title, current.readOnly, current.hasTitle]).toEqual([
    "Chat 1",
    false,
    true,
  ]);
  chats.drop([1]);
  list.bin = [chat(1, 20, { purgeAt: 100 })];
  expect([current.chat?.title, current.readOnly, current.hasTitle]).toEqual([
    "Chat 1",
    true,
    false,
  ]);
  conversation.chat = null;
  expect([current.chat, current.readOnly, current.hasTitle]).toEqual([undefined, false, false]);
});

test("a title is edited only while its chat is open", () => {
  const { conversation, current } = stage();
  current.renaming = true;
  expect(current.renaming).toBe(true);
  conversation.chat = 2;
  expect(current.renaming).toBe(false);
  conversation.chat = null;
  current.renaming = true;
  expect(current.renaming, "a new chat has no title").toBe(false);
});

test("the bin is read again only while it or a chat in it is shown", async () => {
  const { host, chats, current, list } = stage();
  const bin = vi.spyOn(host, "bin");
  await current.refreshBin();
  expect(bin).not.toHaveBeenCalled();
  chats.drop([1]);
  list.bin = [chat(1, 20, { purgeAt: 100 })];
  await current.refreshBin();
  expect(bin).toHaveBeenCalledTimes(1);
  expect(current.chat, "the host knows of none").toBeUndefined();
  list.view = "bin";
  await current.refreshBin();
  expect(bin).toHaveBeenCalledTimes(2);
});
