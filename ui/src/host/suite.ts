import { orderCases } from "./suite-order";
import { textOf } from "./parts";
import { equal, grown, holds, last, refused, type HostCase } from "./suite-stage";

export const hostCases: HostCase[] = [
  ...orderCases,
  {
    name: "who hears that an answer has ended may send the next message at once",
    async run(stage) {
      const { view, answer } = await stage.answered();
      const end = stage.events.findIndex(
        (event) => event.type === "ended" && event.message.id === answer.id,
      );
      const changes = stage.events
        .slice(0, end)
        .filter((event) => event.type === "chatChanged" && event.chat.id === view.chat.id);
      const last = changes.at(-1);
      equal(last?.type === "chatChanged" && last.chat.writing, false, "writing before the end");
    },
  },
  {
    name: "a sent message is there with an answer to come, and its draft is gone",
    async run(stage) {
      const { host, questions } = stage;
      await host.saveDraft(null, questions.short.text);
      const view = await stage.send(`${questions.short.text}\n`);
      equal(
        view.messages.map(({ role, state }) => [role, state]),
        [
          ["user", "done"],
          ["assistant", "writing"],
        ],
        "the branch",
      );
      equal(textOf(view.messages[0]), questions.short.text, "the question");
      equal(view.chat.writing, true, "the chat is being written in");
      equal(view.draft.text, "", "the chat's draft");
      const { newChatDraft, current, chats } = await host.snapshot();
      equal(newChatDraft.text, "", "the new chat's draft");
      equal(current, view.chat.id, "the open chat");
      holds(
        chats.some(({ id }) => id === view.chat.id),
        "the chat is listed",
      );
      await stage.ended(last(view).id);
    },
  },
  {
    name: "an answer comes in deltas with numbers in order, and ends with all of them",
    async run(stage) {
      const { view, answer } = await stage.answered();
      const deltas = stage.deltas(answer.id);
      holds(deltas.length > 0, "there are deltas");
      equal(
        deltas.map(({ seq }) => seq),
        deltas.map((_, at) => at + 1),
        "their numbers",
      );
      equal(answer.seq, deltas.length, "the answer's number");
      equal(textOf(answer).trim(), grown(deltas).trim(), "the answer's text");
      equal([answer.state, answer.error, answer.omitted], ["done", null, null], "its end");
      equal(answer.siblings, [answer.id], "its versions");
      const { stats } = answer;
      if (!stats) throw new Error("no stats");
      holds(stats.tokens > 0 && stats.promptTokens >= stats.cachedTokens, "tokens are counted");
      holds(stats.firstTokenMs >= 0 && stats.tokensPerSecond > 0, "time is taken");
      holds(stats.model !== "" && stats.device !== "", "model and device are named");

      const stages = stage.events.filter((event) => event.type === "stage");
      holds(
        stages.some((event) => event.message === answer.id && event.stage.name === "writing"),
        "there is a stage event for writing",
      );
      const { id } = view.chat;
      await stage.event("chatChanged", ({ chat }) => chat.id === id && !chat.writing);
      const writing = stage.events.flatMap((event) =>
        event.type === "chatChanged" && event.chat.id === id ? [event.chat.writing] : [],
      );
      equal([writing[0], writing.at(-1)], [true, false], "the chat in the list");
    },
  },
  {
    name: "while an answer is written its chat takes nothing else, and Stop keeps what is there",
    async run(stage) {
      const { host, questions } = stage;
      const { view, answer } = await stage.underWay();
      const [question] = view.messages;
      if (!question) throw new Error("no question");
      await refused(host.send(view.chat.id, questions.short.text, false));
      await refused(host.regenerate(answer, false, null));
      await refused(host.continueAnswer(answer));
      await refused(host.deleteMessage(answer));
      await refused(host.forkChat(answer));
      await host.stop(view.chat.id);
      const stopped = await stage.ended(answer);
      equal(stopped.state, "stopped", "its end");
      equal(textOf(stopped).trim(), grown(stage.deltas(answer)).trim(), "what is there");
      equal((await host.openChat(view.chat.id)).chat.writing, false, "the chat is free");
      await host.stop(view.chat.id);
    },
  },
  {
    name: "a stopped answer goes on where it was",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.underWay();
      await host.stop(view.chat.id);
      const stopped = await stage.ended(answer);
      const from = stage.events.length;
      const again = await host.continueAnswer(answer);
      equal([last(again).id, last(again).state], [answer, "writing"], "the answer");
      holds(textOf(last(again)).startsWith(textOf(stopped).trimEnd()), "what was there is there");
      await stage.event("delta", (event) => event.message === answer, from);
      await host.stop(view.chat.id);
      const whole = await stage.ended(answer, from);
      holds(textOf(whole).startsWith(textOf(stopped).trimEnd()), "it goes on");
      holds(textOf(whole).length > textOf(stopped).length, "there is more of it");
    },
  },
  {
    name: "a whole answer goes on, and undoing gives it back what it had",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.answered();
      const from = stage.events.length;
      await host.continueAnswer(answer.id);
      const longer = await stage.ended(answer.id, from);
      holds(textOf(longer).length > textOf(answer).length, "there is more of it");
      holds(textOf(longer).startsWith(textOf(answer)), "behind what was there");
      equal((await host.undo())?.chat, view.chat.id, "the chat of what was undone");
      const back = last(await host.openChat(view.chat.id));
      equal(
        [textOf(back), back.state, back.stats],
        [textOf(answer), "done", answer.stats],
        "as before",
      );
      const [question] = view.messages;
      if (question) await refused(host.continueAnswer(question.id));
    },
  },
  {
    name: "a deleted message is gone with what follows it until that is undone",
    async run(stage) {
      const { host, questions } = stage;
      const { view, answer } = await stage.answered();
      const sent = await host.send(view.chat.id, questions.short.text, false);
      await stage.ended(last(sent).id);
      const left = await host.deleteMessage(answer.id);
      equal([left.after, left.messages.length], [answer.parent, 0], "what is left behind it");
      const open = async (): Promise<number[]> =>
        (await host.openChat(view.chat.id)).messages.map(({ id }) => id);
      equal(await open(), [answer.parent], "the branch");
      await refused(host.showSibling(answer.id));
      const undone = await host.undo();
      equal(undone?.label, "deleted an answer", "what was undone");
      equal(undone?.restored, "an answer", "what is back");
      equal((await open()).length, 4, "all of it is back");
      equal((await host.redo())?.restored, null, "what is back of what is gone again");
      equal(await open(), [answer.parent], "and gone again");
    },
  },
  {
    name: "a branch becomes a chat of its own",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.answered();
      const copy = await host.forkChat(answer.id);
      holds(copy.chat.id !== view.chat.id, "it is another chat");
      holds(copy.chat.title.endsWith(" (copy)"), "its title says so");
      const said = copy.messages.map((message) => [message.role, textOf(message)]);
      equal(
        said,
        [
          ["user", textOf(view.messages[0])],
          ["assistant", textOf(answer)],
        ],
        "its messages",
      );
      equal(last(copy).stats, answer.stats, "the answer's figures");
      await host.undo();
      holds((await host.openChat(copy.chat.id)).chat.purgeAt !== null, "it is in the bin");
    },
  },
  {
    name: "an answer of another length says that it was asked for, and undoing removes it",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.answered();
      const shorter = last(await host.regenerate(answer.id, false, "shorter"));
      equal([shorter.length, answer.length], ["shorter", null], "the wish");
      equal((await stage.ended(shorter.id)).length, "shorter", "to the end");
      await host.undo();
      const back = last(await host.openChat(view.chat.id));
      equal([back.id, back.siblings], [answer.id, [answer.id]], "the answer from before");
    },
  },
  {
    name: "an answer has versions, of which one is shown",
    async run(stage) {
      const { host } = stage;
      const { view, answer } = await stage.answered();
      const second = last(await host.regenerate(answer.id, false, null));
      equal(second.siblings, [answer.id, second.id], "its versions");
      equal(second.parent, answer.parent, "what it answers");
      await stage.ended(second.id);
      equal(last(await host.showSibling(answer.id)).id, answer.id, "the first one");
      equal(last(await host.openChat(view.chat.id)).id, answer.id, "it stays shown");
    },
  },
  {
    name: "a request answers with the branch from where it is another",
    async run(stage) {
      const { host, questions } = stage;
      const { view, answer } = await stage.answered();
      const [question] = view.messages;
      if (!question) throw new Error("no question");
      equal([view.after, (await host.openChat(view.chat.id)).after], [null, null], "the whole");
      const sent = await host.send(view.chat.id, questions.short.text, false);
      equal([sent.after, sent.messages.length], [answer.id, 2], "a message is added");
      await stage.ended(last(sent).id);
      const again = await host.regenerate(answer.id, false, null);
      equal([again.after, again.messages.length], [question.id, 1], "another answer");
      await stage.ended(last(again).id);
      const back = await host.showSibling(answer.id);
      equal([back.after, back.messages.length], [question.id, 3], "the first one");
    },
  },
  {
    name: "an edited question is a version of its own, without an answer",
    async run(stage) {
      const { host } = stage;
      const { view } = await stage.answered();
      const [question] = view.messages;
      if (!question) throw new Error("no question");
      const edited = await host.editMessage(question.id, "What is a wren?", null);
      equal(edited.messages.length, 1, "what is shown");
      equal(edited.messages[0]?.siblings, [question.id, last(edited).id], "its versions");
      equal(textOf(edited.messages[0]), "What is a wren?", "its text");
      const back = await host.showSibling(question.id);
      equal(back.messages.length, 2, "the first question has its answer");
    },
  },
  {
    name: "nothing is no message",
    async run({ host }) {
      await refused(host.send(null, " \n ", false));
    },
  },
  {
    name: "a word is found where it was said, but not in a deleted chat",
    async run(stage) {
      const { host } = stage;
      const word = `quetzal${stage.events.length}x${Date.now()}`;
      const { view } = await stage.answered(`${stage.questions.short.text} ${word}`);
      const [question] = view.messages;
      const [found] = (await host.search(word)).chats;
      const hit = found?.hits.find(({ message }) => message === question?.id);
      equal([found?.chat, hit?.kind], [view.chat.id, "text"], "the chat, and where in it");
      holds(!!hit?.snippet.includes(`\uE000${word}\uE001`), "the snippet marks the word");
      equal(await host.searchChat(word, view.chat.id), found?.hits, "all of the chat");
      await host.deleteChats([view.chat.id]);
      equal((await host.search(word)).chats, [], "after it was deleted");
      equal((await host.search(" ")).chats, [], "no question");
    },
  },
  {
    name: "a draft stays with its chat until its message is sent",
    async run(stage) {
      const { host } = stage;
      const { view } = await stage.answered();
      const id = view.chat.id;
      await host.saveDraft(id, "half a sen");
      equal((await host.openChat(id)).draft.text, "half a sen", "the draft");
      const sent = await host.send(id, stage.questions.short.text, false);
      equal(sent.draft.text, "", "the draft of what was sent");
      equal(sent.messages.length, 2, "what is added");
      await stage.ended(last(sent).id);
    },
  },
  {
    name: "what the context is filled with is counted, also while an answer is written",
    async run(stage) {
      const { host } = stage;
      const empty = await host.contextUsage(null, "", 0, false);
      if (!empty) throw new Error("no model is open");
      holds(empty.instructions > 0 && empty.context > empty.reserved, "a new chat");
      equal([empty.chat, empty.message], [0, 0], "nothing was said");
      const [tokens = 0] = (await host.countTokens(["A text of some words."])) ?? [];
      holds(tokens > 0, "a text");
      const draft = await host.contextUsage(null, "A text of some words.", 40, false);
      holds((draft?.message ?? 0) >= tokens, "a draft, with what the model's protocol adds to it");
      equal(draft?.pasted, 40, "what goes with it");

      const { view } = await stage.underWay();
      const { id } = view.chat;
      const written = await host.contextUsage(id, "", 0, false);
      holds((written?.chat ?? 0) > 0 && typeof written?.written === "number", "what is written");
      await host.stop(id);
      await stage.ended(last(view).id);
      const ended = await host.contextUsage(id, "", 0, false);
      equal(ended?.written, null, "it has ended");
      holds((ended?.cached ?? 0) > 0, "it was read");
    },
  },
  {
    name: "a new chat begins with a summary of another, which is undone",
    async run(stage) {
      const { host } = stage;
      const { view } = await stage.answered();
      const started = await host.startSummary(view.chat.id);
      equal(started.chat.continues, view.chat.id, "where it comes from");
      const [question, summary] = started.messages;
      holds(textOf(question).includes(view.chat.title), "the question names the chat");
      if (!summary) throw new Error("no summary");
      equal(summary.thinks, false, "it is not thought about");
      await host.stop(started.chat.id);
      await stage.ended(summary.id);
      holds((await host.undo())?.label.startsWith("started “") ?? false, "the change");
      holds((await host.openChat(started.chat.id)).chat.purgeAt !== null, "it is in the bin");
      await host.openChat(view.chat.id);
      await refused(host.startSummary(started.chat.id));
    },
  },
  {
    name: "settings are kept as they were saved",
    async run({ host }) {
      const { settings } = await host.snapshot();
      const changed = { ...settings, theme: "dark" as const, maxTokens: 321, thinking: false };
      equal(await host.saveSettings(changed), changed, "the answer");
      equal((await host.snapshot()).settings, changed, "the snapshot");
      await host.saveSettings(settings);
    },
  },
  {
    name: "settings are undone, and said to be",
    async run({ host }) {
      const { settings } = await host.snapshot();
      await host.saveSettings({ ...settings, maxTokens: 125 });
      const undone = await host.undo();
      equal(undone?.settings, settings, "what they are again");
      equal((await host.snapshot()).settings, settings, "the snapshot");
      equal((await host.redo())?.settings?.maxTokens, 125, "what they are once more");
      await host.undo();
    },
  },
  {
    name: "a preset is made, chosen for a new chat, kept by it, and deleted",
    async run(stage) {
      const { host } = stage;
      const { samplingChanges: sampling } = (await host.snapshot()).settings;
      const content = { instructions: "Be brief.", thinking: false, sampling };
      const name = `Preset ${Date.now()}`;
      const id = await host.savePreset(null, { ...content, name });
      const second = await host.savePreset(null, { ...content, name });
      const listed = async (): Promise<string[]> =>
        (await host.snapshot()).presets.flatMap((each) =>
          [id, second].includes(each.id) ? [each.name] : [],
        );
      equal(await listed(), [name, `${name} 2`], "the second name");
      await refused(host.savePreset(second, { ...content, name }));
      await refused(host.savePreset(null, { ...content, name: " " }));
      const chosen = { preset: id, instructions: "Rhyme.", tools: ["calculator"] };
      await host.choosePreset(null, chosen);
      equal((await host.snapshot()).newChatPreset, chosen, "the choice");
      const from = stage.events.length;
      const { view } = await stage.answered();
      equal(view.preset, chosen, "what the chat keeps");
      await stage.event(
        "presetChosen",
        ({ chat, preset }) => chat === null && preset === null,
        from,
      );
      equal((await host.snapshot()).newChatPreset, null, "the next chat's");
      await host.deletePreset(second);
      equal(await listed(), [name], "what is left");
      await host.undo();
      equal(await listed(), [name, `${name} 2`], "undone");
      for (const each of [id, second]) await host.deletePreset(each);
      await refused(host.choosePreset(view.chat.id, chosen));
    },
  },
  {
    name: "network connections are counted by process",
    async run({ host }) {
      const check = await host.checkNetwork();
      if (check.type !== "counted") throw new Error("it is not counted here");
      const [first] = check.processes;
      holds(first?.name === "goldcrest" && first.readable, "the app comes first");
    },
  },
  {
    name: "the local API is off at first, and refuses ports and addresses that cannot be used",
    async run({ host }) {
      const state = {
        on: false,
        port: 8484,
        origins: [],
        hasKey: false,
        status: { kind: "off" },
      };
      const isSame = async (): Promise<void> => equal(await host.apiState(), state, "its state");
      await isSame();
      for (const port of [0, 1023, 65_536]) await refused(host.setApi(false, port, []));
      await refused(host.setApi(false, 8484, ["example"]));
      await isSame();
    },
  },
  {
    name: "what is not there is not found",
    async run({ host }) {
      const nowhere = 987_654_321;
      await refused(host.openChat(nowhere));
      await refused(host.send(nowhere, "Hello", false));
      await refused(host.regenerate(nowhere, false, null));
      await refused(host.deleteMessage(nowhere));
      await refused(host.forkChat(nowhere));
      await refused(host.showSibling(nowhere));
      await refused(host.renameChat(nowhere, "Title"));
      await refused(host.deleteChats([nowhere]));
    },
  },
  {
    name: "of a model that is loading nothing is known; what is sent meanwhile waits, thinking and all",
    async run(stage) {
      const { host } = stage;
      await host.useBundledModel();
      await stage.event("model", ({ model }) => model.status.state === "loading");
      const view = await stage.send(stage.questions.short.text, true);
      equal(last(view).thinks, true, "thinking was asked for");
      const { model } = await stage.event("model", (event) => event.model.status.state === "ready");
      if (model.status.state !== "ready") throw new Error("not ready");
      const ready = model.status.model;
      equal(ready.bundledModel, true, "the model");
      holds(ready.contextLength > 0 && ready.kvBytes > 0, "its context is known");
      holds(ready.fileBytes > 0, "its size is known");
      holds(ready.device.name !== "" && ready.device.reason !== "", "its device is known");
      equal((await stage.ended(last(view).id)).thinks, true, "it is asked for to the end");
    },
  },
];
