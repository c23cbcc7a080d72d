import type { GuideTopic, Host } from "../host/host";
import type { Notices } from "./notices.svelte";

/** The guide in the help window. */
export class Help {
  /** True while the window is open. */
  shown = $state(false);
  topics = $state.raw<GuideTopic[]>([]);
  query = $state("");
  /** Id of the open topic. */
  open = $state<string | null>(null);
  /** Ids of the matching topics; null without a query. */
  #found = $state.raw<string[] | null>(null);

  constructor(
    private readonly host: Host,
    private readonly notices: Notices,
  ) {}

  readonly topic = $derived.by(() => this.topics.find(({ id }) => id === this.open) ?? null);
  /** Listed topics under the titles of their pages; without titles in search results. */
  readonly sections = $derived.by((): { title: string | null; topics: GuideTopic[] }[] => {
    if (this.#found !== null) {
      const found = this.#found.map((id) => this.topics.find((topic) => topic.id === id));
      return [{ title: null, topics: found.filter((topic) => topic !== undefined) }];
    }
    const pages = new Map<string, GuideTopic[]>();
    for (const topic of this.topics) {
      const page = pages.get(topic.pageTitle);
      if (page) page.push(topic);
      else pages.set(topic.pageTitle, [topic]);
    }
    return [...pages].map(([title, topics]) => ({ title, topics }));
  });

  /** Opens the window, at a topic if one is given. */
  async show(topic: string | null = null): Promise<void> {
    this.query = "";
    this.#found = null;
    this.open = topic;
    this.shown = true;
    await this.#load();
  }

  async #load(): Promise<void> {
    if (this.topics.length > 0) return;
    this.topics = (await this.notices.guard(this.host.guideTopics())) ?? [];
  }

  /** Topic that answers a question about the app, or null. `unsure`: includes likely topics. */
  async topicOf(question: string, unsure: boolean): Promise<GuideTopic | null> {
    const answer = await this.host.guideAnswer(question).catch(() => null);
    if (answer === null || answer.type === "none") return null;
    if (answer.type === "unsure" && !unsure) return null;
    await this.#load();
    return this.topics.find(({ id }) => id === answer.topic) ?? null;
  }

  close(): void {
    this.shown = false;
  }

  /** Lists the topics that match the query. */
  async search(query: string): Promise<void> {
    this.query = query;
    if (query.trim() === "") {
      this.#found = null;
      return;
    }
    const found = await this.notices.guard(this.host.searchGuide(query));
    // A later request may have been answered first.
    if (found && this.query === query) this.#found = found.slice(0, MOST);
  }
}

/** Limit of listed search results. */
const MOST = 20;
