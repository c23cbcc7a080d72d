import type {
  ApiState,
  ChatView,
  ContextUsage,
  Draft,
  Host,
  Message,
  ModelList,
  ModelView,
  Overrides,
  QueuedMessage,
  SearchAnswer,
  SearchHit,
  Settings,
  Snapshot,
  StartProblem,
  StartState,
  LengthWish,
  ServerList,
} from "../host";
import { textOf, textParts, thinkingOf } from "../parts";
import { defaultSettings } from "../defaults";
import { answerTo } from "./answers";
import { callsFor, runCalls } from "./calling";
import { leftOut, ofTools, tokensOf, usageOf } from "./context";
import { topicIn } from "./guide";
import { htmlOf } from "./html";
import { find, findIn } from "./search";
import { big, type FakeChat, Library, noDraft, ready } from "./library";
import { refuse } from "./models";
import { FakeOrderHost, noChat } from "./order";
import { noRoom } from "./preferences";
import type { Revert } from "./undo";
import { type Rest, words, write } from "./writer";

export type Script = {
  /** Tokens per second; a token is a word here. */
  rate?: number;
  firstStart?: boolean;
  overrides?: Overrides;
  filled?: boolean;
  exchanges?: number;
  /** Exchanges of the newest chat, if it has more than the others. */
  longest?: number;
  model?: ModelView;
  /** Differences from the usual list of models. */
  models?: Partial<ModelList>;
  settings?: Partial<Settings>;
  /** Delay before the first token, in milliseconds. */
  readingMs?: number;
  /** Token after which an answer waits for `resume`, as does a file when it is half loaded. */
  pauseAt?: number;
  /** Problem of a failed start. Every option of the recovery view works. */
  problem?: StartProblem | null;
  /** Opens the store only after `resume`. */
  opensLate?: boolean;
  /** Fails to start with a plain error. */
  startFails?: boolean;
  servers?: ServerList;
  api?: ApiState;
};

/**
 * A host without a model: it answers from a script, at a given speed, and saves nothing. "Say: …"
 * is answered with the text after the colon, and "… 5000 tokens" with that length. The words
 * "fail", "crash", "limit" and "refuse" in a question determine how the answer ends.
 */
export class FakeHost extends FakeOrderHost implements Host {
  readonly library: Library;
  /** Text of every further answer; null if it depends on the question. */
  says: string | null = null;
  #script: Required<Script>;
  #running = new Map<number, () => void>();
  #newDraft = noDraft();
  #current: number | null = null;
  /** Chats with a request to end the thinking. */
  readonly #answersNow = new Set<number>();

  constructor(script: Script = {}) {
    super(
      script.model ?? ready(big),
      script.models,
      (script.pauseAt ?? Infinity) < Infinity,
      script.filled,
    );
    this.#script = {
      rate: 40,
      firstStart: false,
      filled: true,
      exchanges: 1,
      longest: script.exchanges ?? 1,
      model: this.model,
      models: {},
      settings: {},
      overrides: { device: null, threads: null, context: null },
      readingMs: 500,
      pauseAt: Infinity,
      problem: null,
      opensLate: false,
      startFails: false,
      servers: this.servers,
      api: this.api,
      ...script,
    };
    this.servers = this.#script.servers;
    this.api = this.#script.api;
    this.settings = { ...defaultSettings, ...this.#script.settings };
    this.library = new Library(
      this.now(),
      this.#script.filled,
      this.#script.exchanges,
      this.#script.longest,
    );
  }

  async startup(): Promise<StartState> {
    const { problem, opensLate, startFails } = this.#script;
    if (opensLate) await this.resumed;
    if (startFails) return refuse("store", "The chats could not be read.");
    return this.reply<StartState>(problem ? { type: "problem", ...problem } : { type: "ready" });
  }

  retryStart(): Promise<StartState> {
    return this.#recover("retryStart");
  }

  restoreCopy(copy: string): Promise<StartState> {
    return this.#recover("restoreCopy", copy);
  }

  startEmpty(): Promise<StartState> {
    this.library.chats.clear();
    return this.#recover("startEmpty");
  }

  openDamaged(): Promise<StartState> {
    return this.#recover("openDamaged");
  }

  #recover(...call: [string, ...unknown[]]): Promise<StartState> {
    this.calls.push(call);
    this.#script.problem = null;
    return this.startup();
  }

  snapshot(): Promise<Snapshot> {
    return this.reply({
      version: "0.1.0",
      dataFolder: "~/.local/share/goldcrest",
      dataFolderFixed: null,
      logFile: "~/.local/share/goldcrest/logs/goldcrest.log",
      firstStart: this.#script.firstStart,
      chats: this.listed(),
      folders: this.folders,
      current: this.open(this.#current) ? this.#current : null,
      settings: this.settings,
      model: this.model,
      newChatDraft: this.#newDraft,
      presets: this.presetList(),
      newChatPreset: this.chosen.get(null) ?? null,
      maxThreads: 16,
      overrides: this.#script.overrides,
    });
  }

  openChat(id: number): Promise<ChatView> {
    const chat = this.library.chats.get(id);
    if (!chat) return noChat();
    if (this.open(id) && !chat.summary.temporary) this.#current = id;
    return this.reply(this.view(chat));
  }

  send(id: number | null, text: string, thinking: boolean): Promise<ChatView> {
    if (this.full) return noRoom();
    this.calls.push(["send", id, text, thinking]);
    if (text.includes("refuse")) {
      return refuse(
        "too-long",
        "This message is too long: 40,120 tokens, and this model has room for 31,744. Shorten it.",
      );
    }
    const said = text.trimEnd();
    if (said.trim() === "") return refuse("other", "There is no text in this message.");
    this.loadEjected();
    if (id !== null && this.#running.has(id)) return busy();
    const now = this.now();
    const chat =
      id === null
        ? this.library.create(said.split("\n")[0]?.slice(0, 60) ?? said, now)
        : this.open(id);
    if (!chat) return noChat();
    if (chat.summary.title === "") chat.summary = { ...chat.summary, title: said.slice(0, 60) };
    if (id === null) {
      this.#newDraft = noDraft();
      this.#current = chat.summary.id;
      this.keepChosen(chat.summary.id);
    }
    chat.draft = { ...chat.draft, text: "", pastes: [] };
    const { leaf } = chat;
    this.library.add(chat, "user", { text: said, createdAt: now });
    return this.#answerAsked(chat, leaf, thinking);
  }

  async sendQueued(
    id: number,
    text: string,
    thinking: boolean,
    queue: QueuedMessage[],
  ): Promise<ChatView> {
    const { text: typed, pastes } = this.open(id)?.draft ?? noDraft();
    const view = await this.send(id, text, thinking);
    const draft = { text: typed, pastes, queue };
    const chat = this.open(id);
    if (chat) chat.draft = draft;
    return { ...view, draft: structuredClone(draft) };
  }

  regenerate(id: number, thinking: boolean, length: LengthWish | null): Promise<ChatView> {
    this.calls.push(["regenerate", id, thinking, length]);
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    const { chat, message } = found;
    if (this.#running.has(chat.summary.id)) return busy();
    this.#recordTree("regenerated an answer", chat);
    const asked = message.role === "user" ? message.id : message.parent;
    chat.leaf = asked;
    return this.#answer(chat, asked, thinking, length);
  }

  /** Runs before a change of the tree. Undo restores it and stops the answer. */
  #recordTree(label: string, chat: FakeChat): void {
    const { messages, leaf } = chat;
    const before = [...messages];
    this.record(label, chat.summary.id, () => {
      this.#running.get(chat.summary.id)?.();
      return this.library.setTree(chat, before, leaf);
    });
  }

  deleteMessage(id: number): Promise<ChatView> {
    this.calls.push(["deleteMessage", id]);
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    const { chat, message } = found;
    if (this.#running.has(chat.summary.id)) return busy();
    const what = message.role === "user" ? `“${textOf(message).slice(0, 60)}”` : "an answer";
    const revert = this.library.remove(chat, message, this.now());
    this.record(`deleted ${what}`, chat.summary.id, revert);
    return this.reply(this.view(chat, message.parent));
  }

  forkChat(id: number): Promise<ChatView> {
    this.calls.push(["forkChat", id]);
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    const { chat } = found;
    if (this.#running.has(chat.summary.id)) return busy();
    const copy = this.library.create(`${chat.summary.title} (copy)`, this.now());
    const branch = this.library.branch({ ...chat, leaf: id });
    for (const { role, ...message } of branch) {
      const { leaf } = copy;
      this.library.add(copy, role, { ...message, id: this.library.id(), parent: leaf });
    }
    this.record(`made a new chat of “${chat.summary.title}”`, copy.summary.id, () =>
      this.takeDerived(copy.summary.id, chat.summary.id),
    );
    this.emit({ type: "chatChanged", chat: copy.summary });
    return this.reply(this.view(copy));
  }

  answerNow(id: number): Promise<null> {
    this.calls.push(["answerNow", id]);
    this.#answersNow.add(id);
    return Promise.resolve(null);
  }

  continueAnswer(id: number): Promise<ChatView> {
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    if (this.#running.has(found.chat.summary.id)) return busy();
    const { message } = found;
    if (message.role === "user") return refuse("other", "Only an answer can go on.");
    this.record(
      "continued an answer",
      found.chat.summary.id,
      this.#putBack(found.chat, message, { ...message }),
    );
    message.state = "writing";
    message.error = null;
    const rest = {
      thinking: "",
      text: " And so it goes on from where it stopped, to the end of the thought.",
    };
    this.#write(found.chat, found.message, rest);
    return this.reply(this.view(found.chat, found.message.parent));
  }

  #putBack(chat: FakeChat, message: Message, before: Message): Revert {
    return () => {
      this.#running.get(chat.summary.id)?.();
      const now = { ...message };
      Object.assign(message, before);
      return this.#putBack(chat, message, now);
    };
  }

  editMessage(id: number, text: string, answer: boolean | null): Promise<ChatView> {
    this.calls.push(["editMessage", id, text, answer]);
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    const { chat, message } = found;
    if (this.#running.has(chat.summary.id)) return busy();
    const what = message.role === "user" ? `“${textOf(message).slice(0, 60)}”` : "an answer";
    this.#recordTree(`edited ${what}`, chat);
    this.library.add(chat, message.role, {
      ...message,
      id: this.library.id(),
      parts: textParts(text),
    });
    return answer === null
      ? this.reply(this.view(chat, message.parent))
      : this.#answerAsked(chat, message.parent, answer);
  }

  showSibling(id: number): Promise<ChatView> {
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    found.chat.leaf = this.library.leafBelow(found.chat, id);
    return this.reply(this.view(found.chat, found.message.parent));
  }

  stop(id: number): Promise<null> {
    this.#running.get(id)?.();
    return Promise.resolve(null);
  }

  search(query: string): Promise<SearchAnswer> {
    const open = [...this.library.chats.values()].filter(
      ({ summary }) => summary.purgeAt === null && !summary.temporary,
    );
    return this.reply(find(open, query));
  }

  searchChat(query: string, id: number): Promise<SearchHit[]> {
    const chat = this.library.chats.get(id);
    return chat ? this.reply(findIn(chat, query)) : this.reply([]);
  }

  readAhead(id: number | null, text: string, thinking: boolean): Promise<null> {
    this.calls.push(["readAhead", id, text, thinking]);
    return Promise.resolve(null);
  }

  contextUsage(id: number | null, text: string, pasted: number): Promise<ContextUsage | null> {
    const { status } = this.model;
    if (status.state !== "ready") return Promise.resolve(null);
    const chat = id === null ? undefined : this.open(id);
    if (id !== null && !chat) return noChat();
    const branch = chat ? this.library.branch(chat) : [];
    const last = branch.at(-1);
    const written =
      last?.state === "writing" ? words(textOf(last) + thinkingOf(last)).length : null;
    const { tools } = this.chosen.get(id) ?? {};
    const usage = usageOf(branch, text, pasted, written, status.model);
    return this.reply({ ...usage, ...ofTools(branch, tools ?? this.settings.tools) });
  }

  countTokens(texts: string[]): Promise<number[] | null> {
    return this.reply(this.model.status.state === "ready" ? texts.map(tokensOf) : null);
  }

  startSummary(id: number): Promise<ChatView> {
    const of = this.open(id);
    if (!of) return noChat();
    if (!this.library.branch(of).some(({ role }) => role === "assistant"))
      return refuse("other", "There is nothing to sum up in this chat yet.");
    const { title } = of.summary;
    const chat = this.library.create(`${title} (continued)`, this.now());
    chat.summary = { ...chat.summary, continues: id };
    this.record(`started “${chat.summary.title}”`, chat.summary.id, () =>
      this.takeDerived(chat.summary.id, id),
    );
    this.#current = chat.summary.id;
    const text = `Sum up our chat “${title}”, so that we can go on here: what it is about, what we found or decided, and what is still open. Keep the names, figures and code that matter.`;
    this.library.add(chat, "user", { text, createdAt: this.now() });
    return this.#answer(chat, null, false);
  }

  readAgain(id: number): Promise<ChatView> {
    const found = this.library.find(id);
    if (!found) return refuse("other", "This message is not there any more.");
    if (this.#running.has(found.chat.summary.id)) return busy();
    const { chat, message } = found;
    const title = `read all of “${chat.summary.title}” again`;
    this.record(title, chat.summary.id, this.#setAgain(message, true));
    return this.reply(this.view(chat, message.parent));
  }

  #setAgain(message: Message, again: boolean): Revert {
    if (message.readFrom) message.readFrom = { ...message.readFrom, again };
    return () => this.#setAgain(message, !again);
  }

  saveDraft(id: number | null, text: string): Promise<null> {
    if (this.full) return noRoom();
    this.calls.push(["saveDraft", id, text]);
    if (text.trim() !== "") this.loadEjected();
    Object.assign(this.#draftOf(id), { text });
    return Promise.resolve(null);
  }

  savePastes(id: number | null, pastes: string[]): Promise<null> {
    if (this.full) return noRoom();
    this.calls.push(["savePastes", id, pastes]);
    Object.assign(this.#draftOf(id), { pastes });
    return Promise.resolve(null);
  }

  saveQueue(id: number, queue: QueuedMessage[]): Promise<null> {
    if (this.full) return noRoom();
    this.calls.push(["saveQueue", id, queue]);
    Object.assign(this.#draftOf(id), { queue });
    return Promise.resolve(null);
  }

  #draftOf(id: number | null): Draft {
    return id === null ? this.#newDraft : (this.library.chats.get(id)?.draft ?? noDraft());
  }

  chatAsHtml(id: number, thinking: boolean): Promise<string> {
    this.calls.push(["chatAsHtml", id, thinking]);
    const chat = this.open(id);
    if (!chat) return refuse("other", "This chat does not exist any more.");
    return this.reply(htmlOf(chat.summary.title, this.library.branch(chat), thinking));
  }

  openLink(url: string): Promise<null> {
    this.calls.push(["openLink", url]);
    return Promise.resolve(null);
  }

  /** Visible branch after `after`. */
  protected view(chat: FakeChat, after: number | null = null): ChatView {
    const branch = this.library.branch(chat);
    const from = branch.findIndex((message) => message.id === after) + 1;
    return {
      chat: chat.summary,
      after: from > 0 ? after : null,
      messages: branch.slice(from),
      draft: chat.draft,
      preset: this.chosen.get(chat.summary.id) ?? null,
    };
  }

  #lastText(chat: FakeChat): string {
    return textOf(this.library.branch(chat).at(-1));
  }

  /** Answers like `#answer`, or from the guide if it has a certain match. */
  #answerAsked(chat: FakeChat, after: number | null, thinks: boolean): Promise<ChatView> {
    const { status } = this.model;
    const isSmall = status.state === "ready" && status.model.bundledModel;
    const question = this.#lastText(chat);
    const topic = isSmall && this.settings.guideAnswers ? topicIn(question) : undefined;
    if (!topic) return this.#answer(chat, after, thinks);
    this.library.add(chat, "assistant", {
      text: topic.answer,
      guide: topic.id,
      createdAt: this.now(),
    });
    this.#setWriting(chat, false);
    return this.reply(this.view(chat, after));
  }

  /** Answers the last message of the visible branch. Returns the branch after `after`. */
  #answer(
    chat: FakeChat,
    after: number | null,
    thinks: boolean,
    length: LengthWish | null = null,
  ): Promise<ChatView> {
    const branch = this.library.branch(chat);
    const question = this.#lastText(chat);
    const { status } = this.model;
    const message = this.library.add(chat, "assistant", {
      ...(status.state === "ready" && leftOut(branch, status.model)),
      state: "writing",
      thinks,
      length,
      createdAt: this.now(),
    });
    const { thinking, text } = {
      ...answerTo(question),
      ...(this.says !== null && { text: this.says }),
    };
    const rest = { thinking: thinks ? thinking : "", text };
    const scripted = callsFor(question);
    if (scripted.length > 0) void this.#call(chat, message, scripted, { thinking: "", text });
    else this.#write(chat, message, rest, question);
    return this.reply(this.view(chat, after));
  }

  /** Calls tools, then writes `rest`. */
  async #call(
    chat: FakeChat,
    message: Message,
    scripted: ReturnType<typeof callsFor>,
    rest: Rest,
  ): Promise<void> {
    const { id } = chat.summary;
    let isOver = false;
    this.#setWriting(chat, true);
    this.#running.set(id, () => {
      isOver = true;
      Object.assign(message, { state: "stopped", calls: [] });
      this.#end(chat, message);
    });
    await new Promise((resolve) => setTimeout(resolve, this.#script.readingMs));
    this.emit({ type: "stage", chat: id, message: message.id, stage: { name: "calling" } });
    await runCalls(message, scripted, {
      tools: () => this.toolList,
      isDue: () => (this.#script.pauseAt < Infinity ? this.resumed : Promise.resolve()),
      isAllowed: (tool) => this.isAllowed(id, tool),
      ask: (call) => this.ask(id, call),
      isOver: () => isOver,
      called: () => this.emit({ type: "called", chat: id, message }),
    });
    if (!isOver) this.#write(chat, message, rest);
  }

  /** Streams `rest` into `message`. */
  #write(chat: FakeChat, message: Message, rest: Rest, question = ""): void {
    const { id } = chat.summary;
    this.#setWriting(chat, true);
    const stop = write(message, rest, question, {
      ...this.#script,
      model: () => this.model,
      budget: () => this.settings.thinkingBudget,
      isPaused: () => this.paused,
      takesAnswerNow: () => this.#answersNow.delete(id),
      enter: (stage) => this.emit({ type: "stage", chat: id, message: message.id, stage }),
      emit: (delta) => this.emit({ type: "delta", chat: id, message: message.id, ...delta }),
      end: () => this.#end(chat, message),
    });
    this.#running.set(id, stop);
  }

  #end(chat: FakeChat, message: Message): void {
    const { id } = chat.summary;
    this.#running.delete(id);
    this.#setWriting(chat, false);
    const shown = this.library.branch(chat).find((each) => each.id === message.id);
    // Deleted chats send no events.
    if (chat.summary.purgeAt !== null) return;
    const siblings = shown?.siblings ?? [];
    this.emit({ type: "ended", chat: id, message: { ...message, siblings } });
  }

  #setWriting(chat: FakeChat, writing: boolean): void {
    chat.summary = { ...chat.summary, writing, updatedAt: this.now() };
    if (chat.summary.purgeAt === null) this.emit({ type: "chatChanged", chat: chat.summary });
  }
}

const busy = (): Promise<never> =>
  refuse("other", "An answer is still being written in this chat. Stop it first.");
