import type { ChatView, Host, Message, QueuedMessage } from "../host/host";
import type { Chats } from "./chats.svelte";
import { type Composer, whole } from "./composer.svelte";
import type { Context } from "./context.svelte";
import type { Conversation } from "./conversation.svelte";
import type { Notices } from "./notices.svelte";
import type { Presets } from "./presets.svelte";
import type { Queue } from "./queue.svelte";
import type { Slash } from "./slash.svelte";

/** What messages go through on their way to the host. */
type Parts = {
  readonly chats: Chats;
  readonly composer: Composer;
  readonly context: Context;
  readonly conversation: Conversation;
  readonly notices: Notices;
  readonly presets: Presets;
  readonly queue: Queue;
  readonly slash: Slash;
};

/** Sends messages: at once, or when those before them are answered. */
export class Sending {
  /** Chats whose answer is stopped so that what waits is sent. */
  readonly #afterStop = new Set<number>();

  constructor(
    private readonly host: Host,
    private readonly parts: Parts,
    /** Whether the next answer is to be thought about. */
    private readonly thinking: () => boolean,
  ) {}

  /** Sends what is written, or has it wait while an answer is written. */
  async send(): Promise<void> {
    const { composer, context, conversation, presets, queue, slash } = this.parts;
    if (slash.take()) return;
    if (context.tooLong) return;
    // Where a long text was pasted a moment ago, it is not counted yet.
    if (composer.pastes.length > 0 && (await context.refuses())) return;
    if (composer.empty || conversation.busy) return;
    // Out of the box at once: what is typed while the message is on its way is another one.
    const taken = composer.take();
    const { chat, text, pastes } = taken;
    // The host is to have what was written before: the draft, and what the chat is answered with.
    const before = Promise.all([composer.saved(chat), presets.flush()]);
    if (chat !== null && this.#hasToWait(chat)) {
      if (conversation.isStopping(chat)) this.#afterStop.add(chat);
      if (await queue.add(chat, { text, pastes, thinking: this.thinking() })) {
        composer.forget(taken);
        return;
      }
      this.#afterStop.delete(chat);
      composer.putBack(taken);
      return;
    }
    const { visit } = conversation;
    const sent = await conversation.send(whole(taken), this.thinking(), before);
    if (sent === null) composer.putBack(taken);
    else if (visit.isAt(sent)) composer.settle(sent);
  }

  /** A message to the open chat cannot be sent yet: an answer is written, or others are sent before it. */
  #hasToWait(chat: number): boolean {
    const { conversation, queue } = this.parts;
    if (conversation.writing || queue.isMoving(chat)) return true;
    // Between an answer and the word of how it ended.
    return (conversation.last?.writing ?? false) && queue.of(chat).length > 0;
  }

  /** Sends the first message that waits in a chat. It goes on waiting where it is refused. */
  async sendQueued(chat: number): Promise<void> {
    const { chats, conversation, notices, queue } = this.parts;
    await queue.send(chat, async (message, rest) => {
      // The chat may be about to be shown.
      while (conversation.busy) await conversation.shown;
      if (chats.find(chat)?.writing) return false;
      const request = (): Promise<ChatView> =>
        this.host.sendQueued(chat, whole(message), message.thinking, rest);
      if (chat === conversation.chat) return conversation.sendQueued(request);
      return (await notices.guard(request())) !== null;
    });
  }

  /** Stops the answer that is being written, and sends the first message that waits instead. */
  async sendNow(chat: number): Promise<void> {
    const { conversation } = this.parts;
    if (!conversation.writing) return this.sendQueued(chat);
    this.#afterStop.add(chat);
    if (!(await conversation.stop())) this.#afterStop.delete(chat);
  }

  /** Takes a message that waits back into the box. */
  editQueued(chat: number, message: QueuedMessage): void {
    const { composer, queue } = this.parts;
    const { text, pastes, thinking } = message;
    composer.putBack({ chat, text, pastes });
    composer.thinking = thinking;
    queue.remove(chat, message);
    composer.focus();
  }

  /**
   * An answer has ended: sends what waits in its chat. After a failure or a stop the person sees first what there is, unless
   * it was stopped to send what waits.
   */
  goOn(chat: number, state: Message["state"]): void {
    const wanted = this.#afterStop.delete(chat);
    if (wanted || ["done", "limit"].includes(state)) void this.sendQueued(chat);
  }
}
