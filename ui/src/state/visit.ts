/**
 * A person's stay with a chat, from when they ask for it until they ask for another. What comes after an `await` acts only
 * for the visit that began it: by then the person may have gone on.
 */
export class Visit {
  /** The person has not asked for another chat. */
  lasts = true;

  /** `chat`: null is a new one, until its first message makes it a chat, and one whose chat was removed. */
  constructor(public chat: number | null) {}

  /** The person is still here, and the chat is this one. */
  isAt(chat: number): boolean {
    return this.lasts && this.chat === chat;
  }
}
