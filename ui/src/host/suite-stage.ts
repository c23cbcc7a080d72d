import { textOf } from "./parts";
import type { ChatView, Host, HostEvent, Message, Part, Settings, Failure } from "./host";

/**
 * Contract of every host. Each case runs against the scripted host and the real one, and does not
 * know which it is, so that it can also run in the real window.
 */
export type HostCase = { name: string; run: (stage: HostStage) => Promise<void> };

/** A question and the settings under which the host's model answers it as needed. */
type Asked = { text: string; settings: Partial<Settings> };

/** A question with a short answer, and one whose answer goes on until it is stopped. */
export type Questions = { short: Asked; endless: Asked };

type Of<Type extends HostEvent["type"]> = Extract<HostEvent, { type: Type }>;

const TIMEOUT_MS = 60_000;

/** A host with its events so far, and the means to wait for more. */
export class HostStage {
  readonly events: HostEvent[] = [];

  private constructor(
    readonly host: Host,
    readonly questions: Questions,
  ) {}

  static async open(host: Host, questions: Questions): Promise<HostStage> {
    const stage = new HostStage(host, questions);
    await host.subscribe((event) => stage.events.push(event));
    return stage;
  }

  /** Waits for the first matching event from index `from` on. */
  async event<Type extends HostEvent["type"]>(
    type: Type,
    isWanted: (event: Of<Type>) => boolean = () => true,
    from = 0,
  ): Promise<Of<Type>> {
    const end = Date.now() + TIMEOUT_MS;
    for (;;) {
      const found = this.events
        .slice(from)
        .find((event) => event.type === type && isWanted(event as Of<Type>));
      if (found) return found as Of<Type>;
      if (Date.now() > end) throw new Error(`no ${type} came: ${JSON.stringify(this.events)}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  /** Sends in a new chat. */
  async send(text: string, thinking = false): Promise<ChatView> {
    await this.#set(this.questions.short);
    return this.host.send(null, text, thinking);
  }

  async #set({ settings }: Asked): Promise<void> {
    await this.host.saveSettings({ ...(await this.host.snapshot()).settings, ...settings });
  }

  /** Waits until the message has ended. */
  async ended(message: number, from = 0): Promise<Message> {
    return (await this.event("ended", (event) => event.message.id === message, from)).message;
  }

  /** Sends in a new chat and waits for the answer. */
  async answered(text = this.questions.short.text): Promise<{ view: ChatView; answer: Message }> {
    const view = await this.send(text);
    return { view, answer: await this.ended(last(view).id) };
  }

  /** Starts an endless answer and waits for its first text. */
  async underWay(): Promise<{ view: ChatView; answer: number }> {
    await this.#set(this.questions.endless);
    const view = await this.host.send(null, this.questions.endless.text, false);
    const answer = last(view).id;
    await this.event("delta", (event) => event.message === answer && textOf(event) !== "");
    return { view, answer };
  }

  /** Deltas of a message. */
  deltas(message: number, from = 0): Of<"delta">[] {
    const isDelta = (event: HostEvent): event is Of<"delta"> =>
      event.type === "delta" && event.message === message;
    return this.events.slice(from).filter(isDelta);
  }
}

export function last(view: ChatView): Message {
  const message = view.messages.at(-1);
  if (!message) throw new Error("the chat is empty");
  return message;
}

export function equal(actual: unknown, expected: unknown, what: string): void {
  const [is, should] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (is !== should) throw new Error(`${what}: ${is}, not ${should}`);
}

export function holds(fact: boolean, what: string): void {
  if (!fact) throw new Error(what);
}

export async function refused(request: Promise<unknown>): Promise<void> {
  const error = await request.then(
    () => null,
    (reason: Failure) => reason,
  );
  if (error === null) throw new Error("not refused");
  equal(error.code, "other", "the refusal's code");
  holds(error.message.length > 10, "a refusal says why");
}

/** Text of all deltas of an answer. */
export const grown = (deltas: { parts: Part[] }[]): string => deltas.map(textOf).join("");
