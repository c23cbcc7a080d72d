import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { FakeHost } from "../host/fake/fake";
import type { ChatSummary, Host } from "../host/host";
import type { App } from "./app.svelte";
import type { Entry } from "./entry.svelte";
import { chatKey } from "./rows";
import { sends, start } from "./started.fixture";

// Responses that arrive after the user has moved on.

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const settle = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const lastDraft = (host: FakeHost): unknown =>
  host.calls.filter(([verb]) => verb === "saveDraft").at(-1);

type Stage = { app: App; host: FakeHost; first: number; other: number };

/** Starts an app with the first chat of the list open. */
async function stage(...script: Parameters<typeof start>): Promise<Stage> {
  const { app, host } = await start(...script);
  const [first = 0, other = 0] = app.chats.listed.map(({ id }) => id);
  await app.navigation.open(first);
  return { app, host, first, other };
}

/** Opens the other chat and begins a message in it, while a response is pending. */
async function goOn({ app, other }: Stage): Promise<void> {
  await app.navigation.open(other);
  app.composer.write("For the other chat");
  await settle(10_000);
}

function expectStayed({ app, host, other }: Stage): void {
  expect([app.conversation.chat, app.composer.text]).toEqual([other, "For the other chat"]);
  expect(lastDraft(host)).toEqual(["saveDraft", other, "For the other chat"]);
}

/** Delays requests of one kind by `ms` milliseconds. */
function slow(host: FakeHost, verb: keyof Host, ms: number): void {
  const real = host[verb].bind(host) as (...given: unknown[]) => Promise<unknown>;
  Object.assign(host, {
    [verb]: async (...given: unknown[]) => (await later(ms), real(...given)),
  });
}

async function temporary(app: App): Promise<ChatSummary> {
  await app.navigation.newTemporaryChat();
  app.composer.write("Tell me a story");
  await app.sending.send();
  await settle(60_000);
  if (!app.current.chat?.temporary) throw new Error("no temporary chat");
  return app.current.chat;
}

const lastAnswer = ({ conversation }: App): Entry => {
  if (!conversation.lastAnswer) throw new Error("no answer");
  return conversation.lastAnswer;
};

/** An action in the first chat, by the request that it makes, and the notice that confirms it. */
const asked: [
  Exclude<keyof Host, "subscribe">,
  string,
  (stage: Stage) => Promise<() => Promise<unknown>>,
][] = [
  [
    "keepChat",
    "Kept “Tell me a story”",
    async ({ app }) => {
      const chat = await temporary(app);
      return () => app.navigation.keep(chat);
    },
  ],
  [
    "forkChat",
    "“How does compound interest work? (copy)” is in the list.",
    async ({ app }) =>
      () =>
        app.navigation.fork(lastAnswer(app)),
  ],
  [
    "startSummary",
    "“How does compound interest work? (continued)” is in the list.",
    async ({ app }) =>
      () =>
        app.navigation.startWithSummary(),
  ],
  [
    "beginTemporaryChat",
    "",
    async ({ app }) =>
      () =>
        app.navigation.newTemporaryChat(),
  ],
  [
    "deleteMessage",
    "Deleted the answer",
    async ({ app }) =>
      () =>
        app.deletion.deleteMessage(lastAnswer(app)),
  ],
  [
    "restoreMessage",
    "Restored an answer",
    async ({ app }) => {
      await app.deletion.deleteMessage(lastAnswer(app));
      await app.list.refreshBin();
      const [deleted] = app.list.deletedMessages;
      if (!deleted) throw new Error("nothing is deleted");
      return () => app.deletion.restoreMessage(deleted);
    },
  ],
  [
    "undo",
    "Undone: renamed “How does compound interest work?”",
    async ({ app, first }) => {
      await app.chats.rename(first, "Interest");
      return () => app.history.undo();
    },
  ],
  [
    "redo",
    "Redone: renamed “How does compound interest work?”",
    async ({ app, first }) => {
      await app.chats.rename(first, "Interest");
      await app.history.undo();
      return () => app.history.redo();
    },
  ],
  [
    "send",
    "",
    async ({ app }) => {
      app.composer.write("Go on");
      return () => app.sending.send();
    },
  ],
  [
    "regenerate",
    "",
    async ({ app }) =>
      () =>
        app.conversation.regenerate(lastAnswer(app), false),
  ],
  [
    "editMessage",
    "",
    async ({ app }) =>
      () =>
        app.conversation.edit(lastAnswer(app), "Otherwise", null),
  ],
];

test.each(asked)("%s is answered while another chat is read", async (verb, says, prepare) => {
  const at = await stage();
  const ask = await prepare(at);
  slow(at.host, verb, 3000);
  const done = ask();
  await settle(100);
  await goOn(at);
  await done;
  await settle(0);
  expectStayed(at);
  expect(at.app.notices.list.at(-1)?.text ?? "").toBe(says);
});

test("a notice leads to the copy that was not opened", async () => {
  const at = await stage();
  const { app, host, first } = at;
  slow(host, "forkChat", 3000);
  const forked = app.navigation.fork(lastAnswer(app));
  await goOn(at);
  await forked;
  app.notices.list.at(-1)?.action?.run();
  await settle(100);
  expect(app.current.chat?.title).toBe("How does compound interest work? (copy)");
  expect(app.conversation.chat).not.toBe(first);
});

test("a search leads to another branch of a chat that was left meanwhile", async () => {
  const at = await stage();
  const { app, host, first, other } = at;
  const answer = app.conversation.lastAnswer;
  if (!answer) throw new Error("no answer");
  await app.conversation.regenerate(answer, false);
  await settle(60_000);
  await app.navigation.open(other);
  let opened = 0;
  let open: Promise<void> | null = null;
  const real = host.openChat.bind(host);
  const sibling = host.showSibling.bind(host);
  host.openChat = async (id) => {
    if (id === first && ++opened === 2) await later(200);
    return real(id);
  };
  host.showSibling = async (id) => {
    const view = await sibling(id);
    open = app.navigation.open(other);
    return view;
  };
  const hit = app.navigation.open(first, answer.id, "x");
  await settle(5000);
  await hit;
  await open;
  app.composer.write("For the other chat");
  await settle(5000);
  expectStayed(at);
});

test("a message that is sent right after a stop is sent when the answer has ended", async () => {
  const { app, host } = await start({ rate: 5 });
  app.composer.write("Tell me a story");
  await app.sending.send();
  const stop = host.stop.bind(host);
  host.stop = (id) => (setTimeout(() => void stop(id), 100), Promise.resolve(null));
  await app.conversation.stop();
  app.composer.write("And another");
  await app.sending.send();
  await settle(60_000);
  expect(sends(host)).toHaveLength(2);
});

test("what is typed while a temporary chat is kept is written in the one that it becomes", async () => {
  const { app, host } = await start();
  const chat = await temporary(app);
  slow(host, "keepChat", 3000);
  const done = app.navigation.keep(chat);
  app.composer.write("half a message");
  await settle(1000);
  app.navigation.newChat();
  await settle(10_000);
  await done;
  const kept = app.chats.listed[0]?.id ?? 0;
  expect(app.conversation.chat).toBe(null);
  expect(host.library.chats.get(kept)?.draft.text).toBe("half a message");
  await app.navigation.open(kept);
  expect(app.composer.text).toBe("half a message");
  expect(app.notices.list.filter(({ tone }) => tone === "error")).toEqual([]);
});

test("who comes back to a temporary chat that is being kept is led to the one that it becomes", async () => {
  const { app, host } = await start();
  const chat = await temporary(app);
  slow(host, "keepChat", 3000);
  const done = app.navigation.keep(chat);
  app.navigation.newChat();
  await app.navigation.open(chat.id);
  await settle(10_000);
  await done;
  expect(app.current.chat).toMatchObject({ temporary: false, title: "Tell me a story" });
});

test("a chat is opened though the one before it is deleted meanwhile", async () => {
  const { app, host, first, other } = await stage();
  slow(host, "openChat", 1000);
  const opened = app.navigation.open(other);
  const chat = app.chats.find(first);
  if (chat) await app.deletion.remove([chat]);
  await settle(5000);
  await opened;
  expect(app.conversation.chat).toBe(other);
});

test("a chat that is deleted while it is opened does not come", async () => {
  const { app, host, first, other } = await stage();
  const real = host.openChat.bind(host);
  host.openChat = async (id) => {
    const view = await real(id);
    await later(1000);
    return view;
  };
  const opened = app.navigation.open(other);
  await host.deleteChats([other]);
  await settle(5000);
  await opened;
  expect([app.conversation.chat, app.conversation.busy]).toEqual([first, false]);
});

test("who could not go is still where they were", async () => {
  const { app, host, first, other } = await stage();
  vi.spyOn(host, "openChat").mockRejectedValueOnce({ code: "other", message: "No." });
  await app.navigation.open(other);
  expect(app.conversation.chat).toBe(first);
  await app.navigation.fork(lastAnswer(app));
  expect(app.current.chat?.title).toBe("How does compound interest work? (copy)");
});

test("a preset is chosen for the chat in which it was, and switches no thinking in another", async () => {
  const at = await stage();
  const { app, host, first } = at;
  await app.presets.add();
  const preset = app.presets.list.at(-1);
  if (!preset) throw new Error("no preset");
  await app.presets.change(preset, { thinking: false });
  app.presets.instruct("Be brief.");
  slow(host, "choosePreset", 3000);
  const chosen = app.presets.choose(preset.id);
  await goOn(at);
  await chosen;
  const calls = host.calls.filter(([verb]) => verb === "choosePreset");
  expect(calls.map(([, chat]) => chat)).toEqual([first, first]);
  expect(app.thinking.wanted).toBe(true);
  expectStayed(at);
});

test("a preset is made of the chat in which that was asked for", async () => {
  const at = await stage();
  const { app, host, first } = at;
  app.presets.instruct("Be brief.");
  slow(host, "choosePreset", 1000);
  slow(host, "savePreset", 1000);
  const saved = app.presets.saveChatAs("Brief", true);
  await goOn(at);
  expect(await saved).toBe(true);
  const made = app.presets.list.find(({ name }) => name === "Brief");
  expect(made?.instructions).toBe("Be brief.");
  const calls = host.calls.filter(([verb]) => verb === "choosePreset");
  expect(calls.map(([, chat]) => chat)).toEqual([first, first]);
});

test("instructions that were typed in two chats at once are saved in both", async () => {
  const { app, host, first, other } = await stage();
  app.presets.instruct("Be brief.");
  await app.navigation.open(other);
  app.presets.instruct("Be thorough.");
  await settle(1000);
  const calls = host.calls.filter(([verb]) => verb === "choosePreset");
  expect(calls.map(([, chat]) => chat)).toEqual([first, other]);
});

test("a message is sent to its chat though that is left while its instructions are saved", async () => {
  const at = await stage();
  const { app, host, first } = at;
  app.presets.instruct("Be brief.");
  slow(host, "choosePreset", 1000);
  app.composer.write("Go on");
  const sent = app.sending.send();
  await goOn(at);
  await sent;
  expect(sends(host)).toEqual([["send", first, "Go on", true]]);
  expectStayed(at);
});

test("a title is edited in its own chat alone", async () => {
  const { app, host, first, other } = await stage();
  slow(host, "openChat", 1000);
  const opened = app.navigation.open(other);
  app.current.renaming = true;
  expect([app.conversation.chat, app.current.renaming]).toEqual([first, true]);
  await settle(2000);
  await opened;
  expect([app.conversation.chat, app.current.renaming]).toEqual([other, false]);
});

test("the next chat is the one below that which is being opened", async () => {
  const { app, host } = await stage();
  slow(host, "openChat", 1000);
  app.navigation.openNeighbour(1);
  app.navigation.openNeighbour(1);
  await settle(2000);
  expect(app.conversation.chat).toBe(app.chats.listed[2]?.id);
});

test("the list that was asked for last is shown", async () => {
  const { app, host } = await start();
  slow(host, "bin", 1000);
  const bin = app.list.show("bin");
  await app.list.show("chats");
  await settle(2000);
  await bin;
  expect(app.list.view).toBe("chats");
});

test("the bin is as it was found last", async () => {
  const { app, host, first } = await stage();
  const real = host.bin.bind(host);
  let waits = 2000;
  host.bin = async () => {
    const bin = await real();
    await later((waits -= 1000));
    return bin;
  };
  const shown = app.list.show("bin");
  const chat = app.chats.find(first);
  if (chat) await app.deletion.remove([chat]);
  await settle(5000);
  await shown;
  expect(app.list.bin.map(({ id }) => id)).toEqual([first]);
});

test("a new folder is not named in another list, nor in place of what is being renamed", async () => {
  const { app, host, first } = await stage();
  slow(host, "createFolder", 1000);
  const created = app.list.newFolder();
  app.list.renaming = chatKey(first);
  await settle(2000);
  await created;
  expect(app.list.renaming).toBe(chatKey(first));
  app.list.renaming = null;
  const another = app.list.newFolder();
  await app.list.show("archive");
  await settle(2000);
  await another;
  expect([app.list.view, app.list.renaming]).toEqual(["archive", null]);
});

test("the chat is printed that was asked for last", async () => {
  const { app, host, first, other } = await stage();
  const real = host.chatAsHtml.bind(host);
  let waits = 3000;
  host.chatAsHtml = async (...asked) => {
    await later((waits -= 1000));
    return real(...asked);
  };
  const both = [app.transfers.print(first), app.transfers.print(other)];
  await settle(5000);
  await Promise.all(both);
  expect(app.transfers.printed).toContain(app.chats.find(other)?.title);
});

test("what went wrong with a model is said where it is seen", async () => {
  const { app, host } = await start();
  app.models.show();
  host.removeModel = async () => {
    await later(1000);
    throw { code: "other", message: "No." };
  };
  const [entry] = app.models.here;
  if (!entry) throw new Error("no model");
  const removed = app.models.remove(entry);
  app.models.close();
  await settle(2000);
  await removed;
  expect(app.notices.list.at(-1)?.text).toBe("No.");
});
