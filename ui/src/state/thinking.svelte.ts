import type { Conversation } from "./conversation.svelte";
import type { Model } from "./model.svelte";
import { rereadBy, type Reread } from "./reread";

/** The thinking mode of the next message. */
export class Thinking {
  /** State of the switch, which an open model that cannot think overrides. */
  wanted = $state(true);

  constructor(
    private readonly model: Model,
    private readonly conversation: Conversation,
  ) {}

  /** False only if a model is open and cannot think. */
  readonly possible = $derived.by(() => this.model.open?.canThink ?? true);
  /** Mode of the next message, as the switch shows it. */
  readonly on = $derived.by(() => this.wanted && this.possible);
  /** Tokens to reread because the mode differs from that of the last answer. */
  readonly reread = $derived.by((): Reread | null =>
    rereadBy(this.conversation.entries, this.on, this.model.open?.name ?? null),
  );
}
