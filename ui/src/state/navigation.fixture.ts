import { FakeHost } from "../host/fake/fake";
import { Announcer } from "./announcer.svelte";
import { Chats } from "./chats.svelte";
import { Composer } from "./composer.svelte";
import { Conversation } from "./conversation.svelte";
import { CurrentChat } from "./current-chat.svelte";
import { Find } from "./find.svelte";
import { Folders } from "./folders.svelte";
import { Layout } from "./layout.svelte";
import { ChatList } from "./list.svelte";
import { Model } from "./model.svelte";
import { Navigation } from "./navigation";
import { Notices } from "./notices.svelte";
import { Preferences } from "./preferences.svelte";
import { Presets } from "./presets.svelte";
import { Queue } from "./queue.svelte";
import { Search } from "./search.svelte";
import { Thinking } from "./thinking.svelte";

/** Builds the navigation and its parts on a scripted host, and follows the changes of chats. */
export async function navigate() {
  const host = new FakeHost({ readingMs: 50, rate: 400 });
  const notices = new Notices();
  const announcer = new Announcer();
  const layout = new Layout();
  const chats = new Chats(host, notices);
  const list = new ChatList(host, notices, chats, new Folders(host, notices));
  const conversation = new Conversation(host, notices);
  const current = new CurrentChat(conversation, chats, list);
  const find = new Find(conversation);
  const thinking = new Thinking(new Model(host, notices), conversation);
  const preferences = new Preferences(host, notices);
  const presets = new Presets(host, notices, preferences, conversation, thinking);
  const composer = new Composer(host, notices, thinking, layout);
  const queue = new Queue(host, notices);
  const search = new Search(host, notices, layout);
  const parts = { announcer, chats, composer, conversation, current, find, list, notices };
  const all = { ...parts, preferences, presets, queue, search, thinking };
  const navigation = new Navigation(host, all);
  await host.subscribe((event) => {
    if (event.type === "chatChanged") chats.put(event.chat);
    if (event.type === "chatsChanged") chats.put(...event.chats);
    if (event.type === "ended") conversation.receive(event);
    if (event.type === "chatsRemoved") {
      chats.drop(event.chats);
      navigation.lose(event.chats);
    }
  });
  chats.take((await host.snapshot()).chats);
  const [first, second] = chats.list;
  if (!first || !second) throw new Error("no chats");
  return { host, ...all, navigation, first, second };
}
