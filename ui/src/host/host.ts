/**
 * The one door from the window to the application: every request, and every event that comes back.
 *
 * Times are unix seconds and durations milliseconds unless a name says otherwise.
 */

export type ChatSummary = {
  id: number;
  title: string;
  createdAt: number;
  updatedAt: number;
  writing: boolean;
};

export type Role = "user" | "assistant";

/** `limit`: the answer met the token limit or filled the context. */
export type MessageState = "writing" | "done" | "stopped" | "interrupted" | "limit" | "failed";

export type Stats = {
  promptTokens: number;
  cachedTokens: number;
  tokens: number;
  thinkingTokens: number;
  firstTokenMs: number;
  tokensPerSecond: number;
  readPerSecond: number;
  seed: number;
  model: string;
  device: string;
};

export type ErrorCode =
  | "no-model"
  | "bad-model"
  | "not-found"
  | "busy"
  | "too-long"
  | "generation"
  | "store"
  | "invalid";

/** What every request rejects with. */
export type WireError = { code: ErrorCode; message: string };

export type Message = {
  id: number;
  parent: number | null;
  role: Role;
  text: string;
  thinking: string | null;
  thinkingMs: number | null;
  /** Whether this answer was asked to think first. */
  thinks: boolean;
  state: MessageState;
  stats: Stats | null;
  error: WireError | null;
  createdAt: number;
  /** All versions of this message, itself among them, oldest first. */
  siblings: number[];
  /** The number of the last delta that `text` and `thinking` contain. */
  seq: number;
};

/** A chat's shown branch, root first. */
export type ChatView = { chat: ChatSummary; messages: Message[]; draft: string };

export type Device = { kind: "cpu" | "cuda" | "metal"; name: string; reason: string };

export type ModelStatus = {
  state: "none" | "loading" | "ready" | "failed";
  name: string;
  file: string | null;
  starter: boolean;
  quantisation: string;
  sizeMb: number;
  contextLength: number;
  device: Device | null;
  /** 0 to 1 while loading. */
  progress: number;
  error: WireError | null;
  canThink: boolean;
};

export type Sampling = {
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  repeatPenalty: number;
  seed: number | null;
};

export type Settings = {
  theme: "system" | "light" | "dark";
  device: string;
  threads: number | null;
  contextLength: number | null;
  sampling: Sampling;
  maxTokens: number | null;
  instructions: string;
  thinking: boolean;
  sendWith: "enter" | "ctrl-enter";
  showStats: boolean;
};

export type Snapshot = {
  version: string;
  dataFolder: string;
  logFile: string;
  firstStart: boolean;
  chats: ChatSummary[];
  current: number | null;
  settings: Settings;
  model: ModelStatus;
  drafts: { newChat: string };
};

/** `snippet` is plain text, each hit between U+E000 and U+E001. */
export type SearchHit = {
  chat: number;
  title: string;
  message: number | null;
  snippet: string;
  at: number;
};

export type Stage = "waiting" | "reading" | "thinking" | "writing";

export type HostEvent =
  | { type: "model"; status: ModelStatus }
  | { type: "chatChanged"; chat: ChatSummary }
  | { type: "chatRemoved"; chat: number }
  | {
      type: "stage";
      chat: number;
      message: number;
      stage: Stage;
      done: number;
      total: number;
    }
  | {
      type: "delta";
      chat: number;
      message: number;
      seq: number;
      thinking: string;
      text: string;
      tokens: number;
      tokensPerSecond: number;
    }
  | { type: "ended"; chat: number; message: Message }
  | { type: "dragging"; over: boolean };

export interface Host {
  subscribe(listener: (event: HostEvent) => void): Promise<void>;
  snapshot(): Promise<Snapshot>;
  openChat(chat: number): Promise<ChatView>;
  /** Sends a message; `null` starts a new chat. */
  send(chat: number | null, text: string, thinking: boolean): Promise<ChatView>;
  regenerate(message: number, thinking: boolean): Promise<ChatView>;
  continueAnswer(message: number): Promise<ChatView>;
  /** Makes a sibling of `message`, and an answer to it when `answer` is set. */
  editMessage(message: number, text: string, answer: boolean): Promise<ChatView>;
  showSibling(message: number): Promise<ChatView>;
  stop(chat: number): Promise<void>;
  renameChat(chat: number, title: string): Promise<ChatSummary>;
  deleteChat(chat: number): Promise<void>;
  restoreChat(chat: number): Promise<ChatSummary>;
  search(query: string): Promise<SearchHit[]>;
  saveDraft(chat: number | null, text: string): Promise<void>;
  saveSettings(settings: Settings): Promise<Settings>;
  /** Asks for a file; false when the person chose none. The result arrives as `model` events. */
  pickModel(): Promise<boolean>;
  openModel(path: string): Promise<void>;
  useStarter(): Promise<void>;
  /** Opens an address in the browser; the window has shown it before. */
  openLink(url: string): Promise<void>;
}
