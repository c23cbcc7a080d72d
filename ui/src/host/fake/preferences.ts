import type {
  ChatPreset,
  GuideAnswer,
  GuideTopic,
  ImportedPresets,
  ModelList,
  ModelView,
  NetworkCheck,
  Preset,
  PresetContent,
  Settings,
  Undone,
} from "../host";
import { fold } from "../../text/query";
import { defaultSettings } from "../defaults";
import { guideTopics, topicIn } from "./guide";
import { FakeModelHost, refuse } from "./models";
import { FakeUndo, type Revert } from "./undo";

const usual = defaultSettings.samplingChanges;

/** Initial presets. */
const first: Preset[] = [
  {
    id: 1,
    name: "Coder",
    instructions: "Answer with code first, then one sentence on how it works.",
    thinking: true,
    sampling: { ...usual, temperature: 0.3 },
  },
  {
    id: 2,
    name: "Editor",
    instructions: "Correct spelling and grammar. Keep the tone. Return the text only.",
    thinking: false,
    sampling: { ...usual, temperature: 0 },
  },
];

/** Content of the file of the next import. */
const imported: PresetContent = {
  name: "Tutor",
  instructions: "Ask one question at a time.",
  thinking: null,
  sampling: usual,
};

/** The part of the scripted host for settings, presets and undo. */
export abstract class FakePreferencesHost extends FakeModelHost {
  protected readonly changes = new FakeUndo();
  protected settings: Settings = defaultSettings;
  protected readonly presets = new Map<number, Preset>();
  protected readonly chosen = new Map<number | null, ChatPreset>();
  #next = 1;

  constructor(
    model: ModelView,
    models: Partial<ModelList> | undefined,
    paused: boolean,
    some = true,
  ) {
    super(model, models, paused);
    for (const preset of some ? first : []) this.#put(preset.id, preset);
  }

  /** Simulates a full disk: nothing is saved. */
  full = false;

  saveSettings(settings: Settings): Promise<Settings> {
    if (this.full) return noRoom();
    this.calls.push(["saveSettings", settings]);
    const { theme, zoom } = settings;
    this.#use({ ...this.settings, theme, zoom });
    const same = JSON.stringify(settings) === JSON.stringify(this.settings);
    const revert = this.#use(settings);
    if (!same) this.changes.record("changed a setting", null, revert);
    return this.reply(settings);
  }

  #use(settings: Settings): Revert {
    const before = this.settings;
    this.settings = settings;
    return () => this.#use(before);
  }

  undo(): Promise<Undone | null> {
    return this.#moved(() => this.changes.undo());
  }

  redo(): Promise<Undone | null> {
    return this.#moved(() => this.changes.redo());
  }

  #moved(move: () => Omit<Undone, "settings"> | null): Promise<Undone | null> {
    const before = this.settings;
    const moved = move();
    const settings = before === this.settings ? null : this.settings;
    return this.reply(moved && { ...moved, settings });
  }

  /** Copies the choice for the new chat to a chat, as the real host does. */
  protected keepChosen(chat: number): void {
    const usual = { preset: this.settings.defaultPreset, instructions: "" };
    this.chosen.set(chat, this.chosen.get(null) ?? usual);
    if (this.chosen.has(null)) this.choose(null, null);
  }

  protected presetList(): Preset[] {
    return [...this.presets.values()].sort((one, other) => one.name.localeCompare(other.name));
  }

  savePreset(id: number | null, preset: PresetContent): Promise<number> {
    this.calls.push(["savePreset", id, preset]);
    const name = preset.name.trim();
    if (name === "") return refuse("other", "The name of a preset cannot be empty.");
    if (id === null) return this.reply(this.#add([{ ...preset, name }])[0] ?? 0);
    if (this.#isTaken(name, id)) {
      return refuse("other", `There is a preset “${name}” already. Choose another name.`);
    }
    const before = this.presets.get(id);
    if (!before) return gone();
    const revert = this.#put(id, { ...preset, id, name });
    this.changes.record(`changed the preset “${before.name}”`, null, revert);
    return this.reply(id);
  }

  deletePreset(id: number): Promise<null> {
    const preset = this.presets.get(id);
    if (!preset) return gone();
    this.changes.record(`deleted the preset “${preset.name}”`, null, this.#put(id, null));
    return Promise.resolve(null);
  }

  choosePreset(id: number | null, preset: ChatPreset): Promise<null> {
    this.calls.push(["choosePreset", id, preset]);
    const name = preset.preset === null ? null : this.presets.get(preset.preset)?.name;
    if (name === undefined) return gone();
    const isOther = preset.preset !== (this.chosen.get(id)?.preset ?? null);
    const chosen = name === null ? "chose no preset" : `chose the preset “${name}”`;
    const label = isOther ? chosen : "changed the instructions";
    this.changes.record(label, id, this.choose(id, preset));
    return Promise.resolve(null);
  }

  exportPresets(ids: number[]): Promise<string | null> {
    this.calls.push(["exportPresets", ids]);
    return this.reply("presets.json");
  }

  importPresets(): Promise<ImportedPresets | null> {
    return this.reply({ ids: this.#add([imported]), leftOut: [] });
  }

  guideTopics(): Promise<GuideTopic[]> {
    return this.reply(guideTopics);
  }

  searchGuide(typed: string): Promise<string[]> {
    const found = guideTopics.filter(({ title }) => fold(title).includes(fold(typed.trim())));
    return this.reply(found.map(({ id }) => id));
  }

  guideAnswer(question: string): Promise<GuideAnswer> {
    const topic = topicIn(question);
    return this.reply<GuideAnswer>(topic ? { type: "sure", topic: topic.id } : { type: "none" });
  }

  checkNetwork(): Promise<NetworkCheck> {
    const process = { readable: true, network: [], kernel: 0, unconnected: 0 };
    return this.reply<NetworkCheck>({
      type: "counted",
      processes: [
        { ...process, pid: 4021, name: "goldcrest", role: "app", local: 9 },
        {
          ...process,
          pid: 4056,
          name: "WebKitNetworkProcess",
          role: "web-view",
          local: 4,
          kernel: 1,
        },
        { ...process, pid: 4063, name: "WebKitWebProcess", role: "web-view", local: 6 },
        ...(this.list.entries.some(({ download }) => download?.state === "running")
          ? [
              {
                ...process,
                pid: 4102,
                name: "goldcrest-fetch",
                role: "download" as const,
                network: ["TCP 10.0.0.7:51522 to 18.164.174.23:443"],
                local: 0,
              },
            ]
          : []),
      ],
    });
  }

  protected choose(id: number | null, preset: ChatPreset | null): Revert {
    const before = this.chosen.get(id) ?? null;
    if (preset) this.chosen.set(id, preset);
    else this.chosen.delete(id);
    this.emit({ type: "presetChosen", chat: id, preset });
    return () => this.choose(id, before);
  }

  #add(contents: PresetContent[]): number[] {
    const added = contents.map((content) => {
      const id = this.#next;
      let name = content.name;
      for (let number = 2; this.#isTaken(name, id); number++) name = `${content.name} ${number}`;
      const revert = this.#put(id, { ...content, id, name });
      this.changes.record(`added the preset “${name}”`, null, revert);
      return id;
    });
    return added;
  }

  #isTaken(name: string, by: number): boolean {
    return this.presetList().some(
      (other) => other.id !== by && other.name.toLowerCase() === name.toLowerCase(),
    );
  }

  #put(id: number, preset: Preset | null): Revert {
    const before = this.presets.get(id) ?? null;
    if (preset) this.presets.set(id, preset);
    else this.presets.delete(id);
    this.#next = Math.max(this.#next, id + 1);
    this.emit({ type: "presets", presets: this.presetList() });
    return () => this.#put(id, before);
  }
}

const gone = (): Promise<never> => refuse("other", "This preset does not exist any more.");
export const noRoom = (): Promise<never> =>
  refuse("disk-full", "The disk is full: this could not be saved. Free some space and try again.");
