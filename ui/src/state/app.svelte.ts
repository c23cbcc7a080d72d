import { createContext } from "svelte";
import type { Host, HostEvent, Message, Snapshot } from "../host/host";
import { Announcer } from "./announcer.svelte";
import { Api } from "./api.svelte";
import { Backups } from "./backups.svelte";
import { Chats } from "./chats.svelte";
import { Composer } from "./composer.svelte";
import { Context } from "./context.svelte";
import { Conversation } from "./conversation.svelte";
import { CurrentChat } from "./current-chat.svelte";
import { Deletion } from "./deletion";
import { Dialogs } from "./dialogs.svelte";
import { Disk } from "./disk.svelte";
import { Find } from "./find.svelte";
import { Folders } from "./folders.svelte";
import { Help } from "./help.svelte";
import { Layout } from "./layout.svelte";
import { ChatList } from "./list.svelte";
import { ContextMenu } from "./menu.svelte";
import { Model } from "./model.svelte";
import { ModelChecking } from "./model-check.svelte";
import { Models } from "./models.svelte";
import { Navigation } from "./navigation";
import { Notices } from "./notices.svelte";
import { Palette } from "./palette.svelte";
import { Preferences } from "./preferences.svelte";
import { Presets } from "./presets.svelte";
import { Privacy } from "./privacy.svelte";
import { Queue } from "./queue.svelte";
import { Search } from "./search.svelte";
import { Sending } from "./sending";
import { Servers } from "./servers.svelte";
import { Slash } from "./slash.svelte";
import { Thinking } from "./thinking.svelte";
import { Tools } from "./tools.svelte";
import { Transfers } from "./transfers.svelte";
import { UndoHistory } from "./undo-history";

/** Time that the first screen waits for the list of models. */
const LIST_WITHIN_MS = 150;

/** Build and data folder, as shown in the settings. */
type About = Pick<Snapshot, "version" | "dataFolder" | "dataFolderFixed" | "logFile">;

/** Reloads the page, which then shows the note. */
function beginAgain(note: string): void {
  history.replaceState({ note }, "");
  location.reload();
}

/** The application as the window sees it: one class per concern. Routes the events of the host. */
export class App {
  readonly notices: Notices;
  readonly announcer = new Announcer();
  readonly menu = new ContextMenu();
  readonly layout = new Layout();
  readonly dialogs: Dialogs;
  readonly chats: Chats;
  readonly folders: Folders;
  readonly list: ChatList;
  readonly conversation: Conversation;
  readonly current: CurrentChat;
  readonly find: Find;
  readonly model: Model;
  readonly models: Models;
  readonly checking: ModelChecking;
  readonly thinking: Thinking;
  readonly help: Help;
  readonly preferences: Preferences;
  readonly presets: Presets;
  readonly tools: Tools;
  readonly servers: Servers;
  readonly api: Api;
  readonly privacy: Privacy;
  readonly composer: Composer;
  readonly context: Context;
  readonly queue: Queue;
  readonly search: Search;
  readonly navigation: Navigation;
  readonly deletion: Deletion;
  readonly history: UndoHistory;
  readonly palette: Palette;
  readonly slash: Slash;
  readonly sending: Sending;
  readonly disk: Disk;
  readonly transfers: Transfers;
  readonly backups: Backups;
  #firstStart = $state(false);
  about = $state.raw<About>({ version: "", dataFolder: "", dataFolderFixed: null, logFile: "" });

  constructor(private readonly host: Host) {
    this.notices = new Notices({
      undo: () => this.history.undo(),
      redo: () => this.history.redo(),
      onfail: (error) => this.disk.report(error),
    });
    this.dialogs = new Dialogs(host, this.notices);
    this.chats = new Chats(host, this.notices);
    this.folders = new Folders(host, this.notices);
    this.list = new ChatList(host, this.notices, this.chats, this.folders);
    this.conversation = new Conversation(host, this.notices);
    this.current = new CurrentChat(this.conversation, this.chats, this.list);
    this.find = new Find(this.conversation);
    this.model = new Model(host, this.notices);
    this.models = new Models(host, this.notices, this.model);
    this.checking = new ModelChecking(host, this.notices);
    this.thinking = new Thinking(this.model, this.conversation);
    this.help = new Help(host, this.notices);
    this.preferences = new Preferences(host, this.notices);
    this.presets = new Presets(
      host,
      this.notices,
      this.preferences,
      this.conversation,
      this.thinking,
    );
    this.tools = new Tools(host, this.notices, this.model, this.preferences, this.presets);
    this.servers = new Servers(host, this.notices);
    this.api = new Api(host, this.notices);
    this.privacy = new Privacy(host, this.notices);
    this.composer = new Composer(host, this.notices, this.thinking, this.layout);
    this.context = new Context(host, this.conversation, this.model);
    this.queue = new Queue(host, this.notices);
    this.search = new Search(host, this.notices, this.layout);
    this.navigation = new Navigation(host, this);
    this.deletion = new Deletion(host, this);
    this.history = new UndoHistory(host, this);
    this.palette = new Palette(host, this.chats, this.conversation, this.navigation);
    this.slash = new Slash(
      this.composer,
      this.models,
      this.notices,
      () => void this.sending.send(),
    );
    this.sending = new Sending(host, this);
    this.disk = new Disk(host, () => {
      this.composer.resave();
      this.queue.resave();
      this.preferences.resave();
    });
    this.transfers = new Transfers(
      host,
      this.notices,
      this.chats,
      this.dialogs,
      (chat) => void this.navigation.open(chat),
    );
    this.backups = new Backups(host, this.notices, beginAgain);
  }

  /** True before the first message of a new installation. */
  readonly firstStart = $derived.by(() => this.#firstStart && this.chats.listed.length === 0);
  /** True if a new chat offers to download a larger model. */
  readonly offersModel = $derived.by(
    () => (this.model.known?.bundledModel ?? true) && this.conversation.chat === null,
  );
  readonly dialogOpen = $derived.by(
    () =>
      this.dialogs.open ||
      this.palette.shown ||
      this.models.shown ||
      this.help.shown ||
      this.presets.shown ||
      this.list.question !== null ||
      this.transfers.exporting !== null,
  );

  /** Loads the host's state, then follows its events. */
  async start(): Promise<void> {
    const early: HostEvent[] = [];
    let receive = (event: HostEvent): unknown => early.push(event);
    await this.host.subscribe((event) => receive(event));
    const listed = this.models.refresh();
    void this.tools.refresh();
    void this.servers.refresh();
    void this.api.refresh();
    const snapshot = await this.host.snapshot();
    const { version, dataFolder, dataFolderFixed, logFile } = snapshot;
    this.about = { version, dataFolder, dataFolderFixed, logFile };
    this.#firstStart = snapshot.firstStart;
    this.chats.take(snapshot.chats);
    this.folders.take(snapshot.folders);
    this.preferences.value = snapshot.settings;
    this.preferences.maxThreads = snapshot.maxThreads;
    this.preferences.overrides = snapshot.overrides;
    this.model.take(snapshot.model);
    this.presets.list = snapshot.presets;
    this.presets.newChat = snapshot.newChatPreset;
    this.thinking.wanted = this.presets.thinking;
    this.composer.start(snapshot.newChatDraft);
    receive = (event) => this.#receive(event);
    for (const event of early) this.#receive(event);
    if (snapshot.current !== null) await this.navigation.open(snapshot.current);
    // The first screen waits for its offer, with a time limit.
    if (this.offersModel)
      await Promise.race([listed, new Promise((resolve) => setTimeout(resolve, LIST_WITHIN_MS))]);
  }

  /** Saves debounced changes now. */
  async flush(): Promise<void> {
    await Promise.all([this.composer.flush(), this.preferences.flush(), this.presets.flush()]);
  }

  #announceCalls(chat: number, message: Message): void {
    const title = this.chats.find(chat)?.title ?? "";
    this.tools.announce(message, title, () => void this.navigation.open(chat));
  }

  #receive(event: HostEvent): void {
    switch (event.type) {
      case "model":
        this.model.take(event.model);
        this.models.followModel();
        break;
      case "chatChanged":
        this.chats.put(event.chat);
        this.conversation.receive(event);
        break;
      case "chatsChanged":
        this.chats.put(...event.chats);
        void this.current.refreshBin();
        break;
      case "chatsRemoved":
        this.chats.drop(event.chats);
        this.navigation.lose(event.chats);
        void this.current.refreshBin();
        break;
      case "foldersChanged":
        this.folders.take(event.folders);
        break;
      case "presets":
        this.presets.list = event.presets;
        break;
      case "presetChosen":
        this.presets.receive(event.chat, event.preset);
        break;
      case "copyFailed":
        this.notices.warn(event.error.message);
        break;
      case "models":
      case "download":
      case "downloaded":
        this.models.receive(event);
        break;
      case "transfer":
        this.transfers.receive(event.transfer);
        break;
      case "modelCheck":
        this.checking.take(event.check);
        break;
      case "dragging":
        this.model.dragging = event.over;
        break;
      case "settingsChanged":
        this.preferences.take(event.settings);
        break;
      case "toolsChanged":
        void this.tools.refresh();
        break;
      case "serversChanged":
        void this.servers.refresh();
        break;
      case "apiChanged":
        this.api.receive(event.state);
        break;
      case "stage":
      case "delta":
      case "called":
      case "ended":
        if (event.type === "ended") this.disk.report(event.message.error);
        if (event.chat === this.conversation.chat) this.announcer.receive(event);
        else if (event.type === "called") this.#announceCalls(event.chat, event.message);
        this.conversation.receive(event);
        if (event.type === "ended") this.sending.goOn(event.chat, event.message.state);
        break;
      default:
        event satisfies never;
    }
  }
}

export const [useApp, provideApp] = createContext<App>();
