import type { Host, SearchAnswer } from "../host/host";
import { hitGroup, noteOn } from "./hits";
import type { Layout } from "./layout.svelte";
import type { Notices } from "./notices.svelte";

const PAUSE_MS = 80;
const NOTHING: SearchAnswer = { chats: [], more: false, indexing: false };

/** Search over all chats, as the user types. */
export class Search {
  query = $state("");
  #answer = $state.raw<SearchAnswer>(NOTHING);
  /** Query of the current results. */
  answered = $state("");
  /** Set while the focus is to move to the search field, which may not be mounted yet. */
  focusRequested = $state(false);
  /** Last opened hit, while its chat is open. */
  opened = $state.raw<{ chat: number; message: number | null } | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
    private readonly layout: Layout,
  ) {}

  readonly active = $derived(this.query.trim() !== "");
  readonly groups = $derived(this.#answer.chats.map(hitGroup));
  readonly note = $derived(noteOn(this.#answer));

  ask(query: string): void {
    this.query = query;
    clearTimeout(this.#timer);
    if (this.active) this.#timer = setTimeout(() => void this.#run(query), PAUSE_MS);
    else {
      this.#answer = NOTHING;
      this.answered = "";
    }
  }

  focus(): void {
    this.layout.showSidebar();
    this.focusRequested = true;
  }

  /** Lists all matches in a chat. */
  async unfold(chat: number): Promise<void> {
    const before = this.#answer;
    const hits = await this.notices.guard(this.host.searchChat(this.answered, chat));
    if (!hits || before !== this.#answer) return;
    const chats = before.chats.map((found) =>
      found.chat === chat ? { ...found, hits, count: hits.length } : found,
    );
    this.#answer = { ...before, chats };
  }

  async #run(query: string): Promise<void> {
    const answer = await this.notices.guard(this.host.search(query));
    if (query !== this.query) return;
    this.#answer = answer ?? NOTHING;
    this.answered = query;
  }
}
