import { defaultSettings } from "../host/defaults";
import type { ChatPreset, Host, Preset, PresetContent } from "../host/host";
import type { Conversation } from "./conversation.svelte";
import { Delayed } from "./delayed";
import { reason, type Notices } from "./notices.svelte";
import type { Preferences } from "./preferences.svelte";
import { Sequence } from "./sequence";

const SAVE_AFTER_MS = 400;

/** A preset that says nothing yet. */
const blank: PresetContent = {
  name: "New preset",
  instructions: "",
  thinking: null,
  sampling: defaultSettings.samplingChanges,
};

/** What of a preset is to be otherwise, of its sampling value by value. */
export type PresetChange = Partial<Omit<PresetContent, "sampling">> & {
  sampling?: Partial<PresetContent["sampling"]>;
};

/** The presets, and what the open chat is answered with. */
export class Presets {
  list = $state.raw<Preset[]>([]);
  /** What was chosen for the next new chat; null: nothing was. */
  newChat = $state.raw<ChatPreset | null>(null);
  /** The presets are being managed. */
  shown = $state(false);
  /** The one that is looked at then. */
  selected = $state<number | null>(null);
  /** How often it was asked to show what the open chat is answered with. */
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
  ) {}

  /** What the open chat is answered with. */
  readonly chosen = $derived.by((): ChatPreset => {
    const isNew = this.conversation.chat === null;
    const usual = isNew ? this.preferences.value.defaultPreset : null;
    const chosen = isNew ? this.newChat : this.conversation.preset;
    return chosen ?? { preset: usual, instructions: "" };
  });
  /** The preset of the open chat; null: there is none, or it was deleted. */
  readonly current = $derived.by(() => this.find(this.chosen.preset));
  readonly name = $derived.by(() => this.current?.name ?? "No preset");
  /** The instructions of the open chat itself, as they are typed. */
  readonly own = $derived.by(() =>
    this.#typed?.chat === this.conversation.chat && this.#typed
      ? this.#typed.text
      : this.chosen.instructions,
  );
  readonly hasOwn = $derived.by(() => this.own.trim() !== "");
  /** The instructions of the chat, as long as it has none of its own. */
  readonly inherited = $derived.by(
    () => this.current?.instructions.trim() || this.preferences.value.instructions.trim(),
  );
  /** Whether messages of the open chat are thought about at first. */
  readonly thinking = $derived.by(() => this.current?.thinking ?? this.preferences.value.thinking);

  find(preset: number | null): Preset | null {
    return this.list.find(({ id }) => id === preset) ?? null;
  }

  receive(chat: number | null, preset: ChatPreset | null): void {
    if (chat === null) this.newChat = preset;
    else if (chat === this.conversation.chat) this.conversation.preset = preset;
  }

  /** Has the open chat be answered with a preset, and with no instructions of its own. */
  choose(preset: number | null): Promise<void> {
    return this.#chooseFor(this.conversation.chat, preset);
  }

  async #chooseFor(chat: number | null, preset: number | null): Promise<void> {
    await this.flush();
    if (this.#typed?.chat === chat) this.#typed = null;
    await this.#choose(chat, { preset, instructions: "" });
  }

  /** Gives the open chat instructions of its own, soon after the last of them was typed. */
  instruct(instructions: string): void {
    const { chat } = this.conversation;
    const preset = this.current?.id ?? null;
    const typed = { chat, text: instructions };
    if (this.#typed?.chat !== chat) void this.flush();
    this.#typed = typed;
    this.#saving.run(async () => {
      const saved = await this.#choose(chat, { preset, instructions });
      if (saved && this.#typed === typed) this.#typed = null;
    });
  }

  /** Comes when what was typed is saved. */
  flush(): Promise<void> {
    return this.#saving.flush();
  }

  /** Makes a preset of how the open chat is answered, and chooses it. */
  async saveChatAs(name: string, thinking: boolean): Promise<boolean> {
    const { chat } = this.conversation;
    const { samplingChanges } = this.preferences.value;
    const own = Object.entries(this.current?.sampling ?? {}).filter(([, value]) => value !== null);
    const content: PresetContent = {
      name,
      instructions: this.own.trim() || this.inherited,
      thinking,
      sampling: { ...samplingChanges, ...Object.fromEntries(own) },
    };
    await this.flush();
    const id = await this.notices.guard(this.host.savePreset(null, content));
    if (id === null) return false;
    await this.#chooseFor(chat, id);
    return true;
  }

  /** Adds a preset, the same as another or empty, and looks at it. */
  async add(like: PresetContent | null = null): Promise<void> {
    const { name, instructions, thinking, sampling } = like ?? blank;
    const content = { name, instructions, thinking, sampling };
    const id = await this.notices.guard(this.host.savePreset(null, content));
    if (id !== null) this.selected = id;
  }

  /** Why a change was refused; null: it was not. Each is made to what the one before it has left. */
  change(preset: Preset, part: PresetChange): Promise<string | null> {
    return this.#changing.run(() => this.#change(preset, part));
  }

  async #change(preset: Preset, part: PresetChange): Promise<string | null> {
    const { name, instructions, thinking, sampling } = this.find(preset.id) ?? preset;
    try {
      const content = {
        ...{ name, instructions, thinking, ...part },
        sampling: { ...sampling, ...part.sampling },
      };
      await this.host.savePreset(preset.id, content);
      // The host's own word of it may come later.
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

  /** Writes presets to a file that the person chooses. */
  async export(presets: Preset[]): Promise<void> {
    const ids = presets.map(({ id }) => id);
    const file = await this.notices.guard(this.host.exportPresets(ids));
    if (file) this.notices.show(`Exported to ${file}`);
  }

  /** Adds the presets of a file that the person chooses. */
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

  /** False where it was refused. */
  async #choose(chat: number | null, preset: ChatPreset): Promise<boolean> {
    const request = this.host.choosePreset(chat, preset).then(() => true);
    return (await this.notices.guard(request)) ?? false;
  }
}
