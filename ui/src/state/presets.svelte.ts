import { defaultSettings } from "../host/defaults";
import type { ChatPreset, Host, Preset, PresetContent } from "../host/host";
import type { Conversation } from "./conversation.svelte";
import { Delayed } from "./delayed";
import { reason, type Notices } from "./notices.svelte";
import type { Preferences } from "./preferences.svelte";
import { Sequence } from "./sequence";
import type { Thinking } from "./thinking.svelte";

const SAVE_AFTER_MS = 400;

/** Content of a new preset. */
const blank: PresetContent = {
  name: "New preset",
  instructions: "",
  thinking: null,
  sampling: defaultSettings.samplingChanges,
};

/** Changes to a preset. Sampling values are changed one by one. */
export type PresetChange = Partial<Omit<PresetContent, "sampling">> & {
  sampling?: Partial<PresetContent["sampling"]>;
};

/** Tools of a preset, if it has any of its own. */
const toolsOf = ({ tools = null }: Pick<PresetContent, "tools">): Pick<PresetContent, "tools"> =>
  tools === null ? {} : { tools };

/** The presets, and the choice of the open chat. */
export class Presets {
  list = $state.raw<Preset[]>([]);
  /** Choice for the next new chat; null if none was made. */
  newChat = $state.raw<ChatPreset | null>(null);
  /** True while the presets page is open. */
  shown = $state(false);
  /** Preset selected on that page. */
  selected = $state<number | null>(null);
  /** Counts requests to show the preset card of the open chat. */
  cardRequests = $state(0);
  /** Instructions of a chat that are not saved yet. */
  #typed = $state.raw<{ chat: number | null; text: string } | null>(null);
  readonly #saving = new Delayed(SAVE_AFTER_MS);
  readonly #changing = new Sequence();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly preferences: Preferences,
    private readonly conversation: Conversation,
    private readonly thinkingMode: Thinking,
  ) {}

  /** Choice of the open chat, or the default of a new one. */
  readonly chosen = $derived.by((): ChatPreset => {
    const isNew = this.conversation.chat === null;
    const usual = isNew ? this.preferences.value.defaultPreset : null;
    const chosen = isNew ? this.newChat : this.conversation.preset;
    return chosen ?? { preset: usual, instructions: "" };
  });
  /** Preset of the open chat; null if there is none or it was deleted. */
  readonly current = $derived.by(() => this.find(this.chosen.preset));
  readonly name = $derived.by(() => this.current?.name ?? "No preset");
  /** Instructions of the open chat itself, including unsaved edits. */
  readonly own = $derived.by(() =>
    this.#typed?.chat === this.conversation.chat && this.#typed
      ? this.#typed.text
      : this.chosen.instructions,
  );
  readonly hasOwn = $derived.by(() => this.own.trim() !== "");
  /** Instructions that apply while the chat has none of its own. */
  readonly inherited = $derived.by(
    () => this.current?.instructions.trim() || this.preferences.value.instructions.trim(),
  );
  /** Initial thinking mode of the open chat. */
  readonly thinking = $derived.by(() => this.current?.thinking ?? this.preferences.value.thinking);

  find(preset: number | null): Preset | null {
    return this.list.find(({ id }) => id === preset) ?? null;
  }

  /** Opens the presets page at the preset of the open chat. */
  manage(): void {
    this.selected = (this.current ?? this.list[0])?.id ?? null;
    this.shown = true;
  }

  receive(chat: number | null, preset: ChatPreset | null): void {
    if (chat === null) this.newChat = preset;
    else if (chat === this.conversation.chat) this.conversation.preset = preset;
  }

  /**
   * Sets the preset of the open chat, which may change the thinking mode, and clears the chat's own
   * instructions.
   */
  async choose(preset: number | null): Promise<void> {
    const { chat, visit } = this.conversation;
    await this.#chooseFor(chat, preset);
    const thinks = this.current?.thinking ?? null;
    if (visit.lasts && thinks !== null) this.thinkingMode.wanted = thinks;
  }

  async #chooseFor(chat: number | null, preset: number | null): Promise<void> {
    await this.flush();
    if (this.#typed?.chat === chat) this.#typed = null;
    // The tools of the preset replace those of the chat.
    const own = this.find(preset)?.tools ? {} : this.#ownTools;
    await this.#choose(chat, { preset, instructions: "", ...own });
  }

  /** The chat's own choice of tools, if it has one. */
  get #ownTools(): Pick<ChatPreset, "tools"> {
    const { tools = null } = this.chosen;
    return tools === null ? {} : { tools };
  }

  /**
   * Sets the tools of the open chat; null: those of the preset or the settings. Shown at once, since
   * several may be chosen in a row.
   */
  async chooseTools(tools: string[] | null): Promise<void> {
    const { chat, visit } = this.conversation;
    const before = this.chosen;
    const own = { preset: this.current?.id ?? null, instructions: this.own, tools };
    this.receive(chat, own);
    await this.flush();
    const saved = await this.#changing.run(() => this.#choose(chat, own));
    if (!saved && visit.lasts && this.chosen.tools === tools) this.receive(chat, before);
  }

  /** Sets the own instructions of the open chat, debounced. */
  instruct(instructions: string): void {
    const { chat } = this.conversation;
    const preset = this.current?.id ?? null;
    const tools = this.#ownTools;
    const typed = { chat, text: instructions };
    if (this.#typed?.chat !== chat) void this.flush();
    this.#typed = typed;
    this.#saving.run(async () => {
      const own = this.conversation.chat === chat ? this.#ownTools : tools;
      const saved = await this.#choose(chat, { preset, instructions, ...own });
      if (saved && this.#typed === typed) this.#typed = null;
    });
  }

  /** Resolves once the instructions are saved. */
  flush(): Promise<void> {
    return this.#saving.flush();
  }

  /** Saves the settings of the open chat as a preset, and selects it for the chat. */
  async saveChatAs(name: string, thinking: boolean): Promise<boolean> {
    const { chat } = this.conversation;
    const { samplingChanges } = this.preferences.value;
    const own = Object.entries(this.current?.sampling ?? {}).filter(([, value]) => value !== null);
    const content: PresetContent = {
      name,
      instructions: this.own.trim() || this.inherited,
      thinking,
      sampling: { ...samplingChanges, ...Object.fromEntries(own) },
      ...toolsOf({ tools: this.chosen.tools ?? this.current?.tools ?? null }),
    };
    await this.flush();
    const id = await this.notices.guard(this.host.savePreset(null, content));
    if (id === null) return false;
    await this.#chooseFor(chat, id);
    return true;
  }

  /** Adds an empty preset or a copy of `like`, and selects it. */
  async add(like: PresetContent | null = null): Promise<void> {
    const { name, instructions, thinking, sampling } = like ?? blank;
    const content = { name, instructions, thinking, sampling, ...toolsOf(like ?? blank) };
    const id = await this.notices.guard(this.host.savePreset(null, content));
    if (id !== null) this.selected = id;
  }

  /**
   * Changes a preset. Resolves to the reason for a refusal, or to null. Changes run in sequence,
   * each on the result of the one before.
   */
  change(preset: Preset, part: PresetChange): Promise<string | null> {
    return this.#changing.run(() => this.#change(preset, part));
  }

  async #change(preset: Preset, part: PresetChange): Promise<string | null> {
    const before = this.find(preset.id) ?? preset;
    const { name, instructions, thinking, sampling } = before;
    try {
      const content = {
        ...{ name, instructions, thinking, ...toolsOf(before), ...part },
        sampling: { ...sampling, ...part.sampling },
      };
      await this.host.savePreset(preset.id, content);
      // The host's event may arrive later.
      this.list = this.list.map((each) => (each.id === preset.id ? { ...each, ...content } : each));
      return null;
    } catch (error) {
      return reason(error);
    }
  }

  async remove(preset: Preset): Promise<void> {
    const at = this.list.findIndex(({ id }) => id === preset.id);
    const next = this.list[at + 1] ?? this.list[at - 1];
    const request = this.host.deletePreset(preset.id).then(() => true);
    if (!(await this.notices.guard(request))) return;
    if (this.selected === preset.id) this.selected = next?.id ?? null;
    this.notices.changed(`deleted “${preset.name}”`, "Chats that had it are on Default now.");
  }

  /** Exports presets to a file that the user chooses. */
  async export(presets: Preset[]): Promise<void> {
    const ids = presets.map(({ id }) => id);
    const file = await this.notices.guard(this.host.exportPresets(ids));
    if (file) this.notices.show(`Exported to ${file}`);
  }

  /** Imports presets from a file that the user chooses. */
  async import(): Promise<void> {
    const imported = await this.notices.guard(this.host.importPresets());
    if (!imported) return;
    const { ids, leftOut } = imported;
    this.selected = ids[0] ?? null;
    const what =
      ids.length === 1 ? `“${this.find(ids[0] ?? null)?.name}”` : `${ids.length} presets`;
    const without = leftOut.length > 0 ? ` Not supported, left out: ${leftOut.join(", ")}.` : "";
    this.notices.show(`Imported ${what}.${without}`);
  }

  /** Returns false if refused. */
  async #choose(chat: number | null, preset: ChatPreset): Promise<boolean> {
    const request = this.host.choosePreset(chat, preset).then(() => true);
    return (await this.notices.guard(request)) ?? false;
  }
}
