import type { Host, SearchHit } from "../host/host";
import { withoutBidiControls } from "../text/bidi";
import type { Notices } from "./notices.svelte";

const PAUSE_MS = 80;

/** The search over all chats, as the person types. */
export class Search {
  query = $state("");
  hits = $state.raw<SearchHit[]>([]);
  /** The query that `hits` answers. */
  answered = $state("");
  focusRequests = $state(0);
  /** The hit that was opened last, as long as its chat is. */
  opened = $state.raw<{ chat: number; message: number | null } | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly active = $derived(this.query.trim() !== "");

  ask(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    if (this.active) this.#timer = setTimeout(() => void this.#run(query), PAUSE_MS);
    else {
      this.hits = [];
      this.answered = "";
    }
  }

  focus(): void {
    this.focusRequests += 1;
  }

  async #run(query: string): Promise<void> {
    const hits = await this.notices.guard(this.host.search(query));
    if (!hits || query !== this.query) return;
    this.hits = hits.map((hit) => ({ ...hit, title: withoutBidiControls(hit.title) }));
    this.answered = query;
  }
}
