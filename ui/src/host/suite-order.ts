import { equal, holds, last, refused, type HostCase } from "./suite-stage";

/** Order of the chats: titles, pins, folders, the bin and temporary chats. */
export const orderCases: HostCase[] = [
  {
    name: "a title is one line, and its change is an event",
    async run(stage) {
      const { host } = stage;
      const { view } = await stage.answered();
      const from = stage.events.length;
      equal((await host.renameChat(view.chat.id, "  A wren ")).title, "A wren", "the title");
      const { chat } = await stage.event(
        "chatChanged",
        ({ chat }) => chat.id === view.chat.id,
        from,
      );
      equal(chat.title, "A wren", "the title in the event");
      await refused(host.renameChat(view.chat.id, "  "));
    },
  },
  {
    name: "a deleted chat's answer stops; the chat is gone until it is restored",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.underWay();
      const id = view.chat.id;
      await host.deleteChats([id]);
      await stage.event("chatsRemoved", ({ chats }) => chats.includes(id));
      const listed = async (): Promise<boolean> =>
        (await host.snapshot()).chats.some((chat) => chat.id === id);
      equal(await listed(), false, "it is listed");
      const from = stage.events.length;
      const title = view.chat.title;
      equal(await host.restoreChats([id]), `restored “${title}”`, "what was done");
      await stage.event("chatsChanged", ({ chats }) => chats[0]?.id === id, from);
      equal(await listed(), true, "it is listed again");
      const back = await host.openChat(id);
      equal(
        back.messages.map((message) => [message.id === answer, message.state]),
        [
          [false, "done"],
          [true, "stopped"],
        ],
        "its messages",
      );
    },
  },
  {
    name: "chats are pinned, archived and put into folders, which is undone and made again",
    async run(stage) {
      const { host } = stage;
      const { view } = await stage.answered();
      const { id, title } = view.chat;
      const now = async (): Promise<unknown> => {
        const chat = (await host.snapshot()).chats.find((each) => each.id === id);
        return [chat?.pinned, chat?.archived, chat?.folder];
      };
      const name = `Birds ${Date.now()}`;
      const folder = await host.createFolder(` ${name} `, []);
      await stage.event("foldersChanged", ({ folders }) => folders.at(-1)?.name === name);
      equal(await host.pinChats([id], true), `pinned “${title}”`, "pinned");
      equal(await host.archiveChats([id], true), `archived “${title}”`, "archived");
      equal(await host.moveChats([id], folder), `moved “${title}” to “${name}”`, "moved");
      equal(await now(), [true, true, folder], "all of it");
      const undone = await host.undo();
      equal([undone?.label, undone?.chat], [`moved “${title}” to “${name}”`, id], "undone");
      equal(await now(), [true, true, null], "without the folder");
      await host.redo();
      await refused(host.createFolder(name.toUpperCase(), []));
      await host.collapseFolder(folder, true);
      equal(
        await host.deleteFolder(folder),
        `deleted the folder “${name}”`,
        "the folder is deleted",
      );
      equal(await now(), [true, true, null], "its chat stays");
      await host.undo();
      equal(await now(), [true, true, folder], "the folder is back with its chat");
      const { folders } = await host.snapshot();
      equal(folders.at(-1), { id: folder, name, collapsed: true }, "as it was");
      for (let changes = 0; changes < 4; changes++) await host.undo();
      equal(await now(), [false, false, null], "as it began");
      equal(
        (await host.snapshot()).folders.some((each) => each.id === folder),
        false,
        "the folder",
      );
    },
  },
  {
    name: "several chats are deleted as one, read in the bin, and removed for good",
    async run(stage) {
      const { host } = stage;
      const first = (await stage.answered()).view.chat;
      const second = (await stage.answered()).view.chat;
      const ids = [first.id, second.id];
      equal(await host.deleteChats(ids), "deleted 2 chats", "deleted");
      await stage.event("chatsRemoved", ({ chats }) => ids.every((id) => chats.includes(id)));
      const inBin = async (): Promise<number[]> =>
        (await host.bin()).map(({ id }) => id).filter((id) => ids.includes(id));
      equal((await inBin()).sort(), [...ids].sort(), "the bin");
      const read = await host.openChat(first.id);
      holds((read.chat.purgeAt ?? 0) > Date.now() / 1000, "when it is purged");
      equal(read.messages.length, 2, "what was said");
      await refused(host.renameChat(first.id, "Other"));
      await host.deleteForGood([first.id]);
      equal(await inBin(), [second.id], "what is left");
      await refused(host.restoreChats([first.id]));
      await host.restoreChats([second.id]);
      equal(await inBin(), [], "after it was restored");
    },
  },
  {
    name: "a temporary chat is listed and not found, and is another chat when it is kept",
    async run(stage) {
      const { host, questions } = stage;
      const word = `hoatzin${Date.now()}`;
      const { chat } = await host.beginTemporaryChat();
      equal([chat.temporary, chat.title], [true, ""], "an empty one");
      equal((await host.beginTemporaryChat()).chat.id, chat.id, "it is taken again");
      await refused(host.keepChat(chat.id));
      await host.saveDraft(chat.id, "half a sen");
      equal((await host.openChat(chat.id)).draft.text, "half a sen", "its draft");
      const sent = await host.send(chat.id, `${questions.short.text} ${word}`, false);
      await stage.ended(last(sent).id);
      equal((await host.search(word)).chats, [], "the search");
      holds((await host.snapshot()).current !== chat.id, "it is not opened at the next start");
      await refused(host.pinChats([chat.id], true));
      const kept = await host.keepChat(chat.id);
      equal([kept.temporary, kept.title], [false, sent.chat.title], "the kept one");
      await stage.event("chatsRemoved", ({ chats }) => chats.includes(chat.id));
      equal((await host.openChat(kept.id)).messages.length, 2, "its messages");
      holds((await host.search(word)).chats.length > 0, "now it is found");
      equal((await host.undo())?.label, `kept “${kept.title}”`, "undone");
      equal((await host.openChat(chat.id)).messages.length, 2, "it is temporary again");
      equal((await host.search(word)).chats, [], "it is not found again");
      await host.deleteChats([chat.id]);
    },
  },
];
