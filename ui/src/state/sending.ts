import type { ChatView, Host, Message, QueuedMessage } from "../host/host";
import type { Chats } from "./chats.svelte";
import { type Composer, whole } from "./composer.svelte";
import type { Context } from "./context.svelte";
import type { Conversation } from "./conversation.svelte";
import type { Notices } from "./notices.svelte";
import type { Presets } from "./presets.svelte";
import type { Queue } from "./queue.svelte";
import type { Slash } from "./slash.svelte";
import type { Thinking } from "./thinking.svelte";

/** State involved in sending a message. */
type Parts = {
  readonly chats: Chats;
  readonly composer: Composer;
  readonly context: Context;
  readonly conversation: Conversation;
  readonly notices: Notices;
  readonly presets: Presets;
  readonly queue: Queue;
  readonly slash: Slash;
  readonly thinking: Thinking;
};

/** Sends messages at once, or queues them while an answer is being written. */
export class Sending {
  /** Chats whose answer is being stopped in order to send the queue. */
  readonly #afterStop = new Set<number>();

  constructor(
    private readonly host: Host,
    private readonly parts: Parts,
  ) {}

  /** Sends the message, or queues it while an answer is being written. */
  async send(): Promise<void> {
    const { composer, context, conversation, presets, queue, slash, thinking } = this.parts;
    if (slash.take()) return;
    if (context.tooLong) return;
    // A text pasted a moment ago is not counted yet.
    if (composer.pastes.length > 0 && (await context.refuses())) return;
    if (composer.empty || conversation.busy) return;
    // Text typed while the message is in transit belongs to the next one.
    const taken = composer.take();
    const { chat, text, pastes } = taken;
    // The host must have the earlier changes first: the draft, and the preset of the chat.
    const before = Promise.all([composer.saved(chat), presets.flush()]);
    if (chat !== null && this.#hasToWait(chat)) {
      if (conversation.isStopping(chat)) this.#afterStop.add(chat);
      if (await queue.add(chat, { text, pastes, thinking: thinking.on })) {
        composer.forget(taken);
        return;
      }
      this.#afterStop.delete(chat);
      composer.putBack(taken);
      return;
    }
    const { visit } = conversation;
    const sent = await conversation.send(whole(taken), thinking.on, before);
    if (sent === null) composer.putBack(taken);
    else if (visit.isAt(sent)) composer.settle(sent);
  }

  /** Sets the thinking mode, and sends `message` with it unless it is empty. */
  setThinking(wanted: boolean, message: string): void {
    const { composer, slash, thinking } = this.parts;
    thinking.wanted = wanted;
    if (message === "") return;
    composer.write(message);
    // A message, even if it begins with a slash.
    slash.dismiss();
    void this.send();
  }

  /** Returns true if a message to the open chat must wait for an answer or for earlier messages. */
  #hasToWait(chat: number): boolean {
    const { conversation, queue } = this.parts;
    if (conversation.writing || queue.isMoving(chat)) return true;
    // The answer is complete, but its final event has not arrived.
    return (conversation.last?.writing ?? false) && queue.of(chat).length > 0;
  }

  /** Sends the first queued message of a chat. If it is refused, it stays in the queue. */
  async sendQueued(chat: number): Promise<void> {
    const { chats, conversation, notices, queue } = this.parts;
    await queue.send(chat, async (message, rest) => {
      // The chat may be loading.
      while (conversation.busy) await conversation.shown;
      if (chats.find(chat)?.writing) return false;
      const request = (): Promise<ChatView> =>
        this.host.sendQueued(chat, whole(message), message.thinking, rest);
      if (chat === conversation.chat) return conversation.sendQueued(request);
      return (await notices.guard(request())) !== null;
    });
  }

  /** Stops the current answer, and sends the first queued message instead. */
  async sendNow(chat: number): Promise<void> {
    const { conversation } = this.parts;
    if (!conversation.writing) return this.sendQueued(chat);
    this.#afterStop.add(chat);
    if (!(await conversation.stop())) this.#afterStop.delete(chat);
  }

  /** Moves a queued message back to the box. */
  editQueued(chat: number, message: QueuedMessage): void {
    const { composer, queue, thinking } = this.parts;
    const { text, pastes } = message;
    composer.putBack({ chat, text, pastes });
    thinking.wanted = message.thinking;
    queue.remove(chat, message);
    composer.focus();
  }

  /**
   * Sends the next queued message after an answer has ended. After a failure or a stop it waits, so
   * that the user can look first, unless the stop was meant to send the queue.
   */
  goOn(chat: number, state: Message["state"]): void {
    const wanted = this.#afterStop.delete(chat);
    if (wanted || ["done", "limit"].includes(state)) void this.sendQueued(chat);
  }
}
