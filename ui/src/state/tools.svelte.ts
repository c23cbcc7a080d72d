import type { Host, Message, ToolView } from "../host/host";
import { harmlessName } from "../text/tool-texts";
import type { Model } from "./model.svelte";
import type { Notices } from "./notices.svelte";
import type { Preferences } from "./preferences.svelte";
import type { Presets } from "./presets.svelte";

/** Tools of one source. */
export type ToolGroup = { source: string; tools: ToolView[] };

/** The tools, and the ones that are on in the open chat. */
export class Tools {
  list = $state.raw<ToolView[]>([]);
  /** Counts requests to show the card of the open chat's tools. */
  cardRequests = $state(0);
  /** Calls in other chats that a notice was shown for. */
  #announced = new Set<string>();

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly model: Model,
    private readonly preferences: Preferences,
    private readonly presets: Presets,
  ) {}

  /** Reason why the open model cannot call tools, or null. */
  readonly refusal = $derived.by(() => {
    const { open } = this.model;
    if (!open || open.canCallTools) return null;
    return open.bundledModel
      ? "The small model that comes with Goldcrest has no tools. Open another model to use them."
      : "This model was not trained to call tools.";
  });
  /** Names of the tools that apply while the chat has no choice of its own. */
  readonly usual = $derived.by(() => this.presets.current?.tools ?? this.preferences.value.tools);
  /** True if the chat has a choice of its own. */
  readonly hasOwn = $derived.by(() => (this.presets.chosen.tools ?? null) !== null);
  /** Names of the tools that are on in the open chat, those that do not exist now included. */
  readonly chosen = $derived.by(() => this.presets.chosen.tools ?? this.usual);
  /** Number of tools that the model is offered. */
  readonly count = $derived.by(() =>
    this.refusal === null ? this.list.filter(({ name }) => this.chosen.includes(name)).length : 0,
  );
  readonly groups = $derived.by((): ToolGroup[] => grouped(this.list));

  find(name: string): ToolView | undefined {
    return this.list.find((tool) => tool.name === name);
  }

  /** Shows a notice for a call that waits for consent in a chat that is not open. */
  announce({ calls }: Message, chat: string, open: () => void): void {
    for (const { id, status, tool } of calls) {
      if (status !== "asks" || this.#announced.has(id)) continue;
      this.#announced.add(id);
      const words = `${harmlessName(tool.title)} asks to run in “${chat}”`;
      this.notices.show(words, { label: "Show", run: open }, true);
    }
  }

  async refresh(): Promise<void> {
    const list = await this.notices.guard(this.host.listTools());
    if (list) this.list = list;
  }

  /** Turns a tool of the open chat on or off. */
  turn(name: string, on: boolean): void {
    void this.presets.chooseTools(turned(this.chosen, name, on));
  }

  /** Drops the choice of the chat, so that the preset or the settings apply. */
  useUsual(): void {
    void this.presets.chooseTools(null);
  }
}

/** Names with one of them added or removed. */
export const turned = (names: readonly string[], name: string, on: boolean): string[] =>
  on ? [...new Set([...names, name])] : names.filter((each) => each !== name);

/** Tools by their source, the built-in ones first. */
function grouped(tools: readonly ToolView[]): ToolGroup[] {
  const groups = new Map<string, ToolView[]>();
  for (const tool of tools) {
    const source = tool.source.kind === "server" ? tool.source.name : "";
    groups.set(source, [...(groups.get(source) ?? []), tool]);
  }
  return [...groups]
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([source, tools]) => ({ source: source === "" ? "Built in" : source, tools }));
}
