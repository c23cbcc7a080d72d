import type { SlashName } from "../host/slash";
import { copyText } from "../parts/clipboard";
import type { App } from "./app.svelte";
import type { ListView } from "./list.svelte";
import { settingsPages } from "./settings-pages";
import { showStatus } from "./status";

/**
 * An action of the window that can be run by keys, from the command palette or by a slash command.
 */
export type Command = {
  name: string;
  /** Further search terms for the palette. */
  keywords?: string;
  /** Keys as displayed; "Ctrl" stands for ⌘ on a Mac. */
  keys?: string;
  /** Alternative keys. */
  also?: string;
  /** Slash command with the same effect. */
  slash?: SlashName;
  /** `argument`: text after the slash command. */
  run: (app: App, argument: string) => unknown;
  /**
   * Precondition; always true if omitted. `inText`: the focus is in text that the keys could edit.
   */
  when?: (app: App, inText: boolean) => boolean;
  /** Message of a slash command whose precondition fails. */
  otherwise?: string | ((app: App) => string | null);
  /** Hidden from the palette: run only by its keys or its slash command. */
  unlisted?: true;
  /** Its keys also work in dialogs: in all of them, or if the function returns true. */
  inDialogs?: true | ((app: App) => boolean);
  /**
   * Its keys are kept from the web view even if they have no effect: it may open its own find bar.
   */
  reserved?: true;
};

const hasMessages = (app: App): boolean => app.conversation.entries.length > 0;
const canAct = ({ conversation, current }: App): boolean =>
  conversation.lastAnswer !== undefined && !conversation.writing && !current.readOnly;
const hasTitle = ({ current }: App): boolean => current.hasTitle;
const canBeSorted = (app: App): boolean => hasTitle(app) && app.current.chat?.temporary === false;
const notInText = (_: App, inText: boolean): boolean => !inText;

export const commands: readonly Command[] = [
  {
    name: "New chat",
    keywords: "start begin conversation",
    keys: "Ctrl+N",
    slash: "new",
    run: (app) => app.navigation.newChat(),
  },
  {
    name: "New temporary chat",
    keywords: "private incognito secret memory",
    keys: "Ctrl+Shift+N",
    slash: "temp",
    run: (app) => app.navigation.newTemporaryChat(),
    reserved: true,
  },
  {
    name: "Help",
    keywords: "guide manual how to question",
    keys: "F1",
    run: (app) => app.help.show(),
    reserved: true,
  },
  {
    name: "New folder",
    keywords: "group create",
    run: ({ layout, list }) => {
      layout.showSidebar();
      return list.newFolder();
    },
  },
  {
    name: "Search chats, messages and commands",
    keys: "Ctrl+K",
    run: (app) => (app.palette.shown ? app.palette.close() : app.palette.open()),
    unlisted: true,
    inDialogs: (app) => app.palette.shown,
    reserved: true,
  },
  {
    name: "Search in the sidebar",
    keywords: "filter list chats find",
    keys: "Ctrl+Shift+F",
    run: ({ search }) => search.focus(),
    reserved: true,
  },
  {
    name: "Find in this chat",
    keywords: "search",
    keys: "Ctrl+F",
    run: ({ layout, find }) => {
      layout.closeDrawer();
      find.open();
    },
    when: hasMessages,
    reserved: true,
  },
  {
    name: "Next match",
    keys: "Ctrl+G",
    also: "F3",
    run: (app) => app.find.step(1),
    when: hasMessages,
    unlisted: true,
    reserved: true,
  },
  {
    name: "Previous match",
    keys: "Ctrl+Shift+G",
    also: "Shift+F3",
    run: (app) => app.find.step(-1),
    when: hasMessages,
    unlisted: true,
    reserved: true,
  },
  {
    name: "Undo the last change",
    keywords: "back revert restore",
    keys: "Ctrl+Z",
    run: (app) => app.history.undo(),
    inDialogs: true,
  },
  {
    name: "Redo the last change",
    keywords: "again",
    keys: "Ctrl+Shift+Z",
    also: "Ctrl+Y",
    run: (app) => app.history.redo(),
    inDialogs: true,
  },
  {
    name: "Show or hide the sidebar",
    keywords: "chats list panel",
    keys: "Ctrl+B",
    run: ({ layout }) => layout.toggleSidebar(),
  },
  {
    name: "Models",
    keywords: "open get download choose",
    keys: "Ctrl+Shift+M",
    slash: "model",
    run: (app, name) => {
      if (name !== "") void app.models.openNamed(name);
      else if (app.models.shown) app.models.close();
      else app.models.show();
    },
    inDialogs: (app) => app.models.shown && app.dialogs.link === null,
  },
  {
    name: "Preset and instructions of this chat",
    keywords: "system prompt persona",
    keys: "Ctrl+Shift+P",
    run: (app) => (app.presets.cardRequests += 1),
  },
  {
    name: "Manage presets",
    keywords: "instructions persona import export",
    run: ({ presets }) => presets.manage(),
  },
  {
    name: "Settings",
    keywords: "preferences options",
    keys: "Ctrl+,",
    slash: "settings",
    run: (app) => (app.dialogs.settingsPage = "General"),
  },
  {
    name: "Tools of this chat",
    keywords: "functions calls mcp server calculator python switch",
    slash: "tools",
    run: ({ tools }) => (tools.cardRequests += 1),
    when: ({ tools }) => tools.refusal === null,
    otherwise: ({ tools }) => tools.refusal,
  },
  {
    name: "Go to the tool that asks to run",
    keywords: "call allow deny consent focus",
    keys: "Ctrl+Shift+A",
    run: ({ conversation }) => conversation.showAsking(),
    when: ({ conversation }) => conversation.asking !== undefined,
  },
  {
    name: "Previous chat",
    keywords: "above",
    keys: "Shift+ArrowUp",
    run: (app) => app.navigation.openNeighbour(-1),
    when: notInText,
  },
  {
    name: "Next chat",
    keywords: "below",
    keys: "Shift+ArrowDown",
    run: (app) => app.navigation.openNeighbour(1),
    when: notInText,
  },
  ...([true, false] as const).map((thinking): Command => ({
    name: thinking ? "Think before answering" : "Answer without thinking",
    keywords: "thinking reasoning mode",
    slash: thinking ? "think" : "no_think",
    run: ({ sending }, message) => sending.setThinking(thinking, message),
    when: (app) => app.thinking.possible,
    otherwise: "This model does not think.",
  })),
  {
    name: "Regenerate the last answer",
    keywords: "write again retry another",
    keys: "Ctrl+R",
    slash: "regenerate",
    run: (app, way) => writeAgain(app, way),
    when: canAct,
    otherwise: "There is no finished answer in this chat.",
    reserved: true,
  },
  ...(["shorter", "longer"] as const).map((length): Command => ({
    name: `Regenerate the last answer, ${length}`,
    keywords: "write again retry another length brief detail",
    run: (app) => writeAgain(app, length),
    when: canAct,
  })),
  ...([true, false] as const).map((thinking): Command => ({
    name: `Regenerate the last answer, ${thinking ? "with" : "without"} thinking`,
    keywords: "write again retry another mode",
    run: (app) => writeAgain(app, thinking ? "thinking" : "no thinking"),
    when: (app) => app.thinking.possible && canAct(app),
  })),
  {
    name: "Continue the last answer",
    keywords: "go on resume",
    slash: "continue",
    run: ({ conversation }) =>
      conversation.lastAnswer && conversation.continue(conversation.lastAnswer),
    when: canAct,
    otherwise: "There is no finished answer in this chat.",
  },
  {
    name: "Start a new chat with a summary",
    keywords: "summarize continue context full long",
    slash: "summarize",
    run: (app) => app.navigation.startWithSummary(),
    when: ({ conversation, current }) =>
      conversation.lastAnswer !== undefined && !conversation.busy && !current.readOnly,
    otherwise: "There is nothing to sum up in this chat yet.",
  },
  {
    name: "Answer now, while the model thinks",
    keywords: "end stop thinking skip",
    keys: "Ctrl+Enter",
    run: ({ conversation }) => conversation.answerNow(),
    when: ({ conversation }, inText) => conversation.pondering && !inText,
  },
  {
    name: "New chat from here",
    keywords: "copy this fork branch duplicate",
    run: (app) => app.conversation.last && app.navigation.fork(app.conversation.last),
    when: (app) => hasMessages(app) && !app.conversation.writing && !app.current.readOnly,
  },
  {
    name: "Copy the last answer",
    keywords: "clipboard",
    keys: "Ctrl+Shift+C",
    run: ({ conversation }) => copyText(conversation.lastAnswer?.text ?? ""),
    when: ({ conversation }) => (conversation.lastAnswer?.text ?? "") !== "",
    reserved: true,
  },
  {
    name: "Start over with an empty chat",
    slash: "clear",
    run: (app) => app.navigation.startOver(),
    when: hasMessages,
    otherwise: "This chat is empty already.",
    unlisted: true,
  },
  {
    name: "Rename this chat",
    keywords: "title name",
    keys: "F2",
    run: (app) => (app.current.renaming = true),
    when: hasTitle,
  },
  {
    name: "Export this chat",
    keywords: "save markdown html jsonl file backup",
    slash: "export",
    run: ({ current: { chat }, transfers }, file) => chat && transfers.exportTo(chat.id, file),
    when: hasTitle,
    otherwise: "There is no chat here to export.",
  },
  {
    name: "Print this chat",
    keywords: "paper pdf",
    keys: "Ctrl+P",
    run: (app) => app.current.chat && app.transfers.print(app.current.chat.id),
    when: hasTitle,
    reserved: true,
  },
  {
    name: "Export all chats",
    keywords: "save markdown html jsonl file backup",
    run: ({ transfers }) => transfers.exportChats(null),
    when: (app) => app.chats.listed.length > 0,
  },
  {
    name: "Import chats",
    keywords: "chatgpt claude jan lm studio jsonl zip",
    run: ({ transfers }) => transfers.import(),
    when: ({ transfers }) => transfers.running === null,
  },
  {
    name: "Back up now",
    keywords: "copy save backup",
    run: (app) => {
      app.dialogs.settingsPage = "Chats and data";
      return app.backups.backUp();
    },
    when: (app) => app.chats.listed.length > 0,
  },
  ...([true, false] as const).flatMap((on): Command[] => [
    {
      name: `${on ? "Pin" : "Unpin"} this chat`,
      keywords: "top favourite",
      run: ({ current: { chat }, chats }) => chat && chats.pin([chat], on),
      when: (app) => canBeSorted(app) && app.current.chat?.pinned !== on,
    },
    {
      name: `${on ? "Archive" : "Unarchive"} this chat`,
      keywords: "hide list",
      run: ({ current: { chat }, chats }) => chat && chats.archive([chat], on),
      when: (app) => canBeSorted(app) && app.current.chat?.archived !== on,
    },
  ]),
  {
    name: "Move this chat to a folder",
    keywords: "group sort",
    run: ({ current: { chat }, list }) =>
      chat && (list.question = { about: "folder", chats: [chat] }),
    when: canBeSorted,
  },
  {
    name: "Keep this temporary chat",
    keywords: "save disk",
    run: (app) => app.current.chat && app.navigation.keep(app.current.chat),
    when: (app) => hasTitle(app) && app.current.chat?.temporary === true,
  },
  {
    name: "Delete this chat",
    keywords: "remove bin",
    run: (app) => app.current.chat && app.deletion.remove([app.current.chat]),
    when: hasTitle,
  },
  {
    name: "Restore this chat",
    keywords: "bin undelete",
    run: ({ current: { chat }, chats }) => chat && chats.restore([chat]),
    when: (app) => app.current.readOnly,
  },
  {
    name: "Archived chats",
    keywords: "hidden old",
    run: (app) => showList(app, "archive"),
  },
  {
    name: "Bin",
    keywords: "deleted trash restore",
    run: (app) => showList(app, "bin"),
  },
  {
    name: "Status: model, device and context",
    keywords: "info tokens memory offline",
    slash: "status",
    run: (app) => showStatus(app),
  },
  {
    name: "Open a model file",
    keywords: "gguf choose load",
    run: (app) => app.models.pick(),
  },
  {
    name: "Unload the model",
    keywords: "eject free memory",
    run: (app) => app.models.eject(),
    when: (app) => app.model.open !== null && !app.conversation.writing,
  },
  ...(["system", "light", "dark"] as const).map((theme): Command => ({
    name: `Theme: ${theme}`,
    keywords: "colours appearance mode",
    run: (app) => app.preferences.change({ theme }),
    when: (app) => app.preferences.value.theme !== theme,
  })),
  {
    name: "Theme",
    slash: "theme",
    run: (app, theme) => {
      const wanted = (["system", "light", "dark"] as const).find((each) => each === theme);
      if (wanted) app.preferences.change({ theme: wanted });
    },
    unlisted: true,
  },
  {
    name: "Zoom in",
    keywords: "larger text",
    keys: "Ctrl+Plus",
    run: (app) => app.preferences.zoom(1),
    inDialogs: true,
  },
  {
    name: "Zoom out",
    keywords: "smaller text",
    keys: "Ctrl+Minus",
    run: (app) => app.preferences.zoom(-1),
    inDialogs: true,
  },
  {
    name: "Zoom back to 100 %",
    keywords: "reset text size",
    keys: "Ctrl+0",
    run: (app) => app.preferences.zoom(0),
    inDialogs: true,
  },
  {
    name: "Stop the answer, or close a search",
    keys: "Escape",
    run: (app) =>
      app.conversation.writing
        ? void app.conversation.stop()
        : app.find.shown
          ? app.find.close()
          : app.search.ask(""),
    when: (app) => app.conversation.writing || app.find.shown || app.search.active,
    unlisted: true,
  },
  {
    name: "Stop the answer",
    run: (app) => app.conversation.stop(),
    when: (app) => app.conversation.writing,
  },
  {
    name: "Keys and slash commands",
    keywords: "help shortcuts keyboard list",
    keys: "Ctrl+Slash",
    slash: "help",
    run: (app) => (app.dialogs.settingsPage = "Keyboard"),
  },
  {
    name: "Local API settings",
    keywords: "preferences options openai server port key http programs editors",
    run: (app) => (app.dialogs.settingsPage = "Local API"),
  },
  ...settingsPages
    .filter((page) => !["General", "Keyboard", "Local API"].includes(page))
    .map((page): Command => ({
      name: `Settings: ${page}`,
      keywords: "preferences options",
      run: (app) => (app.dialogs.settingsPage = page),
    })),
];

/** Regenerates the last answer in the given way, an argument of the slash command. */
function writeAgain(
  { conversation, thinking, notices }: App,
  way: string,
): Promise<boolean> | undefined {
  const answer = conversation.lastAnswer;
  if (!answer) return undefined;
  if (way === "shorter" || way === "longer")
    return conversation.regenerate(answer, thinking.on, way);
  if (way === "thinking" && !thinking.possible) {
    notices.show("This model does not think.");
    return undefined;
  }
  return conversation.regenerate(answer, way === "" ? thinking.on : way === "thinking");
}

/** Shows a view of the list in the sidebar, in place of search results. */
function showList({ layout, search, list }: App, view: ListView): Promise<void> {
  layout.showSidebar();
  search.ask("");
  return list.show(view);
}

const canRun = ({ when }: Command, app: App): boolean => when?.(app, false) ?? true;

/** Connects the commands to the palette and the slash menu. */
export function offerCommands(app: App): void {
  app.palette.commands = () =>
    commands
      .filter((command) => !command.unlisted && canRun(command, app))
      .map(({ name, keywords = "", keys, slash, run }) => {
        return { name, keywords, keys, slash, run: () => void run(app, "") };
      });
  const behind = (name: SlashName): Command | undefined =>
    commands.find(({ slash }) => slash === name);
  app.slash.refusal = (name) => {
    const command = behind(name);
    if (!command || canRun(command, app)) return null;
    const { otherwise = "" } = command;
    return typeof otherwise === "string" ? otherwise : (otherwise(app) ?? "");
  };
  app.slash.run = (name, argument) => void behind(name)?.run(app, argument);
}
