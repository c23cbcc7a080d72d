import type {
  DatabaseCopy,
  AnswerStats,
  ChatSummary,
  Draft,
  Message,
  ModelCheck,
  ModelInfo,
  ModelView,
  Sampling,
  StartProblem,
  UnopenedModel,
} from "../host";
import { answerParts } from "../parts";
import { answerTo } from "./answers";
import type { Revert } from "./undo";

/** Initial chats and models of the scripted host. */

const greedy: Sampling = {
  temperature: 0,
  topP: 0.95,
  topK: 0,
  minP: 0,
  repeatPenalty: 1,
  repeatLastN: 64,
  seed: null,
};

export const bundledModel: ModelInfo = {
  name: "SmolLM2-135M-Instruct",
  file: null,
  bundledModel: true,
  quantisation: "Q4_1",
  fileBytes: 98_362_432,
  contextLength: 8192,
  contextCanGrow: false,
  contextNote: null,
  kvBytes: 188_743_680,
  fingerprint: "5ca1ab1e00000001",
  chatFormat: "ChatML",
  device: {
    onGpu: false,
    name: "CPU, AVX-512 VNNI, 8 threads",
    reason: "No GPU was found by a Vulkan or Metal driver",
    report: null,
  },
  canThink: false,
  canCallTools: false,
  sampling: { withThinking: greedy, withoutThinking: greedy },
};

/** Result of a check of an intact model. */
export const agreement: ModelCheck = {
  state: "done",
  report: {
    verdict: "agree",
    deviceName: "CPU, AVX-512 VNNI, 8 threads",
    tokens: 96,
    engine: { relativeError: 0.0241, meanKl: 0.0003, top1: 0.9896 },
    candle: { relativeError: 0.0374, meanKl: 0.0007, top1: 0.9792 },
  },
};

const warm: Sampling = { ...greedy, temperature: 0.6 };

export const big: ModelInfo = {
  ...bundledModel,
  name: "SmolLM3-3B",
  file: "~/Models/SmolLM3-Q4_K_M.gguf",
  bundledModel: false,
  quantisation: "Q4_K_M",
  chatFormat: "SmolLM3",
  canThink: true,
  canCallTools: true,
  sampling: { withThinking: warm, withoutThinking: warm },
  fileBytes: 1_915_305_312,
  contextLength: 32768,
  contextCanGrow: true,
  kvBytes: 2_415_919_104,
  fingerprint: "5ca1ab1e00000002",
};

/** A model of another format, with an unknown chat template. */
export const foreign: ModelInfo = {
  ...big,
  name: "SmolLM2-1.7B",
  file: "~/Models/SmolLM2-1.7B-Q4_K_M.gguf",
  fingerprint: "5ca1ab1e00000003",
  chatFormat: "ChatML, chosen by the file's chat template, which differs from the published one",
  canThink: false,
  canCallTools: false,
};

export const ready = (model: ModelInfo): ModelView => ({
  status: { state: "ready", model },
  error: null,
});

/** Facts about a model before it is open: a name derived from its file. */
export function unopened({ name, file, bundledModel }: ModelInfo): UnopenedModel {
  const stem = file
    ?.split("/")
    .at(-1)
    ?.replace(/\.gguf$/u, "");
  return { name: stem ?? name, file, bundledModel };
}

export const loading = (model: ModelInfo, progress: number): ModelView => ({
  status: { state: "loading", model: unopened(model), progress },
  error: null,
});

/** On the CPU, because the driver crashed during the GPU check. */
export const rejectedGpu: ModelInfo = {
  ...big,
  device: {
    onGpu: false,
    name: "CPU, AVX-512 VNNI, 8 threads",
    reason: "Radeon 780M is not used: its driver crashes (signal: 11 (SIGSEGV))",
    report: "Goldcrest 0.1.0, linux x86_64\nRadeon 780M (integrated, 0000:65:00.0), Vulkan",
  },
};

export const stats: AnswerStats = {
  promptTokens: 846,
  cachedTokens: 812,
  tokens: 412,
  thinkingTokens: 138,
  thinkingCut: null,
  repeated: false,
  firstTokenMs: 312,
  tokensPerSecond: 23.4,
  readPerSecond: 184,
  draftedTokens: 48,
  acceptedTokens: 34,
  seed: 8_104_772,
  model: "SmolLM3-3B",
  device: "CPU, AVX-512 VNNI, 8 threads",
};

export const noDraft = (): Draft => ({ text: "", pastes: [], queue: [] });

export type FakeChat = {
  summary: ChatSummary;
  messages: Message[];
  /** Last message of the visible branch. */
  leaf: number | null;
  draft: Draft;
};

const HOUR = 3600;
const DAY = 24 * HOUR;

/**
 * Time of an event of this age in seconds, scaled as if now were the end of the day: two hours ago
 * is today at any hour.
 */
function timeOf(age: number, now: number): number {
  const midnight = new Date(now * 1000).setHours(0, 0, 0, 0) / 1000;
  const sinceMidnight = (now - midnight) * (1 - (age % DAY) / DAY);
  return Math.floor(midnight - Math.floor(age / DAY) * DAY + sinceMidnight);
}

/** Title, age in seconds, and questions. */
const shelf: [string, number, string[]][] = [
  [
    "How does compound interest work?",
    2 * HOUR,
    ["How does compound interest work? A table and some code would help."],
  ],
  ["A story about a small bird", 4 * HOUR, ["Tell me a very short story about a goldcrest"]],
  [
    "Borrow checker and the cache that outlives its owner",
    1 * DAY + 2 * HOUR,
    ["Why does the borrow checker refuse this?"],
  ],
  ["Packing list for the Lofoten in March", 1 * DAY + 7 * HOUR, ["What do I pack?"]],
  ["Briefe auf Deutsch höflich beenden", 3 * DAY, ["Wie beende ich einen Brief höflich?"]],
  ["Explain the Fourier transform with pictures in words", 4 * DAY, ["Explain it with a table"]],
  [
    "Renaming 4,000 photos by date",
    12 * DAY,
    ["How do I rename photos by the date they were taken?"],
  ],
  [
    "Sourdough that does not rise",
    20 * DAY,
    ["My sourdough does not rise. What could be the reason?"],
  ],
  ["Notes for the talk on bird migration", 41 * DAY, ["Outline a talk on bird migration"]],
];

/** A deleted message with its descendants. */
export type FakeDeletion = { chat: FakeChat; message: Message; removed: Message[]; at: number };

export class Library {
  chats = new Map<number, FakeChat>();
  /** Deletions, most recent first, including restored ones. */
  deleted: FakeDeletion[] = [];
  #next = 1;

  /** `exchanges`: per chat; `longest`: of the newest one. */
  constructor(now: number, filled: boolean, exchanges = 1, longest = exchanges) {
    if (!filled) return;
    for (const [title, age, questions] of [...shelf].reverse()) {
      const at = timeOf(age, now);
      const chat = this.create(title, at);
      const count = title === shelf[0]?.[0] ? longest : exchanges;
      for (let turn = 0; turn < count; turn++) {
        for (const question of questions) {
          this.add(chat, "user", { text: question, createdAt: at });
          const answer = answerTo(question);
          this.add(chat, "assistant", {
            ...answer,
            thinkingMs: 12_300,
            thinks: true,
            stats,
            createdAt: at,
          });
        }
      }
    }
  }

  id(): number {
    return this.#next++;
  }

  /** `from`: first id of temporary chats, to create one. */
  create(title: string, at: number, from = 0): FakeChat {
    const chat: FakeChat = {
      summary: {
        id: from + this.id(),
        title,
        createdAt: at,
        updatedAt: at,
        writing: false,
        continues: null,
        folder: null,
        pinned: false,
        archived: false,
        temporary: from > 0,
        purgeAt: null,
      },
      messages: [],
      leaf: null,
      draft: noDraft(),
    };
    this.chats.set(chat.summary.id, chat);
    return chat;
  }

  /** Adds this many older chats without messages. */
  fill(count: number): void {
    for (let n = 1; n <= count; n++) this.create(`Chat ${n}`, 1_700_000_000 - n);
  }

  /** Adds a message to the visible branch, or below `parent`, and shows it. */
  add(
    chat: FakeChat,
    role: Message["role"],
    {
      text = "",
      thinking = "",
      ...fields
    }: Partial<Message> & { text?: string; thinking?: string },
  ): Message {
    const message: Message = {
      id: this.id(),
      parent: chat.leaf,
      role,
      parts: answerParts(thinking, text),
      thinkingMs: null,
      thinks: false,
      length: null,
      guide: null,
      state: "done",
      stats: null,
      error: null,
      omitted: null,
      readFrom: null,
      createdAt: chat.summary.updatedAt,
      siblings: [],
      seq: 0,
      calls: [],
      ...fields,
    };
    chat.messages.push(message);
    chat.leaf = message.id;
    return message;
  }

  find(message: number): { chat: FakeChat; message: Message } | undefined {
    for (const chat of this.chats.values()) {
      const found = chat.messages.find((each) => each.id === message);
      if (found) return { chat, message: found };
    }
    return undefined;
  }

  /** Visible branch, root first. */
  branch(chat: FakeChat): Message[] {
    const byId = new Map(chat.messages.map((message) => [message.id, message]));
    const siblings = new Map<string, number[]>();
    const place = ({ parent, role }: Message): string => `${role} ${parent}`;
    for (const message of chat.messages) {
      const beside = siblings.get(place(message));
      if (beside) beside.push(message.id);
      else siblings.set(place(message), [message.id]);
    }
    const path: Message[] = [];
    for (let at = byId.get(chat.leaf ?? 0); at; at = byId.get(at.parent ?? 0)) path.push(at);
    return path
      .reverse()
      .map((message) => ({ ...message, siblings: [...(siblings.get(place(message)) ?? [])] }));
  }

  /** Ids of a message and its descendants. */
  below(chat: FakeChat, message: number): Set<number> {
    const ids = new Set([message]);
    for (const { id, parent } of chat.messages) if (ids.has(parent ?? 0)) ids.add(id);
    return ids;
  }

  /** Replaces the messages of a chat. Returns the function that reverts this. */
  setTree(chat: FakeChat, messages: Message[], leaf: number | null): Revert {
    const before = [chat.messages, chat.leaf] as const;
    chat.messages = messages;
    chat.leaf = leaf;
    return () => this.setTree(chat, ...before);
  }

  /** Removes a message and its descendants. Shows another version, or else the message before. */
  remove(chat: FakeChat, message: Message, at: number): Revert {
    const gone = this.below(chat, message.id);
    const removed = chat.messages.filter(({ id }) => gone.has(id));
    this.deleted = this.deleted.filter((each) => each.message.id !== message.id);
    this.deleted.unshift({ chat, message, removed, at });
    const left = chat.messages.filter(({ id }) => !gone.has(id));
    const others = left.filter(
      ({ parent, role }) => parent === message.parent && role === message.role,
    );
    const other = others.findLast(({ id }) => id < message.id) ?? others[0];
    const revert = this.setTree(chat, left, message.parent);
    if (other) chat.leaf = this.leafBelow(chat, other.id);
    return revert;
  }

  /** Restores the messages deleted by `remove`, and shows them. */
  putBack({ chat, message, removed }: FakeDeletion): Revert {
    const all = [...chat.messages, ...removed].sort((one, other) => one.id - other.id);
    const revert = this.setTree(chat, all, message.id);
    chat.leaf = this.leafBelow(chat, message.id);
    return revert;
  }

  /** Newest leaf below `message`. */
  leafBelow(chat: FakeChat, message: number): number {
    const child = chat.messages.findLast((each) => each.parent === message);
    return child ? this.leafBelow(chat, child.id) : message;
  }
}

const copy = { reason: "daily", time: null, number: 1 } as const;

export const copies: DatabaseCopy[] = [
  { ...copy, name: "day-2026-11-21.db", day: "2026-11-21", bytes: 3400000, chats: 12 },
  { ...copy, name: "day-2026-11-20.db", day: "2026-11-20", bytes: 3200000, chats: 11 },
  {
    ...copy,
    name: "version-1-1.db",
    reason: "before-update",
    day: null,
    bytes: 200000,
    chats: 1,
  },
];

/** Database set aside by a restore. */
export const setAside: DatabaseCopy = {
  ...copy,
  name: "goldcrest-set-aside-2026-11-19.db",
  reason: "set-aside",
  day: "2026-11-19",
  bytes: 3100000,
  chats: 10,
};

/** A failed start with a damaged database, on a machine with some backups. */
export const damaged: StartProblem = {
  kind: "damaged",
  message:
    "~/.local/share/goldcrest/goldcrest.db is damaged (database disk image is malformed). Nothing was changed; earlier copies are in ~/.local/share/goldcrest/copies.",
  folder: "~/.local/share/goldcrest",
  copies,
  keptAs: "goldcrest-set-aside-2026-11-22.db",
  opens: false,
};

/** A failed start with a missing database, but with backups. */
export const missing: StartProblem = {
  ...damaged,
  kind: "missing",
  message:
    "~/.local/share/goldcrest/goldcrest.db is missing. Copies of it are in ~/.local/share/goldcrest/copies.",
  keptAs: null,
};
