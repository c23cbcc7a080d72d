/**
 * A user's stay in a chat, from opening it until opening another one. After an `await`, code acts
 * only if the visit that began it still lasts: the user may have moved on.
 */
export class Visit {
  /** True until the user opens another chat. */
  lasts = true;

  /** `chat`: null for a new chat before its first message, and after the chat was removed. */
  constructor(public chat: number | null) {}

  /** Checks if the user is still here, in this chat. */
  isAt(chat: number): boolean {
    return this.lasts && this.chat === chat;
  }
}
