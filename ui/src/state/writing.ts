/** Content of a message that is being written: typed text, and long pasted texts. */
export type Writing = { text: string; pastes: string[] };
