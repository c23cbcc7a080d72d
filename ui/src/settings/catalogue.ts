import {
  automaticWords,
  contextHint,
  contextWords,
  precisionHint,
  samplingWords,
} from "../models/words";
import type { App } from "../state/app.svelte";
import { parameters, ZOOMS, type SettingKey } from "../state/preferences.svelte";
import type { SettingsPage } from "../state/settings-pages";
import type { Override, SamplingSettings } from "../state/types";
import { tokens } from "../text/figures";

type Option = readonly [value: unknown, words: string];

/** Control by which a setting is changed. */
export type Control =
  | { kind: "switch" }
  | { kind: "choice"; options: readonly (readonly [string, string])[] }
  | {
      kind: "select";
      options: (app: App) => Option[];
      wide?: true;
      also?: { label: string; run: (app: App) => void };
    }
  | { kind: "number"; min: number; max: (app: App) => number; step?: number }
  | { kind: "text"; placeholder: string }
  | { kind: "folder" }
  | { kind: "tools" }
  | { kind: "allowed" };

export type Setting = {
  key: SettingKey;
  hint: string | ((app: App) => string);
  /** Further search terms. */
  words?: string;
  /** Description of the default. */
  defaultWords: string | ((app: App) => string);
  /** Visibility; always visible if omitted. */
  when?: (app: App) => boolean;
  /** Value that takes precedence, so that the setting has no effect. */
  override?: (app: App) => Override | null;
  /** Set if the control is below the name. */
  below?: true;
  control: Control;
};

export type Group = {
  title?: string;
  /** Note on all of its settings. */
  note?: string;
  /** Label of the button that resets the group, if it has one. */
  reset?: string;
  settings: Setting[];
};

type SamplingSetting = Setting & {
  key: keyof SamplingSettings;
  control: Extract<Control, { kind: "number" }>;
};

/** Hint and limits of a sampling parameter, from the host's table. */
function parameter<K extends keyof typeof parameters>(key: K) {
  const { hint, min, max, step } = parameters[key];
  return { key, hint, control: { kind: "number" as const, min, max: () => max, step } };
}

const sampling = (key: Exclude<keyof SamplingSettings, "seed">): SamplingSetting => ({
  ...parameter(key),
  words: "sampling random creative",
  defaultWords: ({ model }) => samplingWords(model.open, key) ?? "the model’s",
});

const devices = [
  ["auto", "Automatic"],
  ["cpu", "CPU"],
  ["gpu", "GPU"],
] as const;

const IDLE_MINUTES = [5, 10, 30, 60];

/** Adds the current value to the options if it is none of them. */
function withOwn(options: Option[], own: unknown, words: string): Option[] {
  return options.some(([value]) => value === own) ? options : [[own, words], ...options];
}

function idleOptions({ preferences }: App): Option[] {
  const own = preferences.value.unloadMinutes;
  const minutes = own === null || IDLE_MINUTES.includes(own) ? [] : [own];
  const sorted = [...IDLE_MINUTES, ...minutes].sort((one, other) => one - other);
  return [...sorted.map((each): Option => [each, `${each} minutes`]), [null, "Never"]];
}

/** Context length in effect: the override or the setting. */
const contextLength = ({ preferences: { overrides, value } }: App): number | null =>
  overrides.context ? Number(overrides.context.value) : value.contextLength;

function contextOptions(app: App): Option[] {
  const { contexts } = app.model;
  const { kvType } = app.preferences.value;
  const own = contextLength(app);
  const lengths = (contexts?.lengths ?? []).map((option): Option => [
    option.tokens,
    contextWords(option, kvType),
  ]);
  const all = own === null ? lengths : withOwn(lengths, own, tokens(own));
  return [[null, automaticWords(contexts, kvType)], ...all];
}

/** Device in effect: the override or the setting. */
const device = ({ preferences: { overrides, value } }: App): string =>
  overrides.device?.value ?? value.device;

/** Sampling settings, both for all chats and in a preset. */
export const samplingSettings: SamplingSetting[] = [
  sampling("temperature"),
  sampling("topP"),
  sampling("topK"),
  sampling("minP"),
  sampling("repeatPenalty"),
  {
    ...parameter("seed"),
    words: "sampling random repeat same",
    defaultWords: "Random",
  },
];

/**
 * The settings of each page. Each setting is described once: the page, the search, the default and
 * the reset are derived from it.
 */
export const groups: Record<SettingsPage, Group[]> = {
  General: [
    {
      settings: [
        {
          key: "sendWith",
          hint: "The other one starts a new line. Shift+Enter always does.",
          words: "key enter return keyboard message",
          defaultWords: "Enter",
          control: {
            kind: "choice",
            options: [
              ["enter", "Enter"],
              ["ctrl-enter", "Ctrl+Enter"],
            ],
          },
        },
        {
          key: "readAhead",
          hint: "Reads your message while you type it, so answers start sooner. Linux only, and not on battery.",
          words: "prefill draft speed faster",
          defaultWords: "On",
          control: { kind: "switch" },
        },
        {
          key: "guideAnswers",
          hint: "Questions about Goldcrest are answered from its guide while the small model is open; with other models, a line points to it.",
          words: "help topic app",
          defaultWords: "On",
          control: { kind: "switch" },
        },
        {
          key: "modelTitles",
          hint: "Otherwise a chat is named after your first message. Not with the small model that comes with Goldcrest.",
          words: "name chat automatic",
          defaultWords: "Off",
          control: { kind: "switch" },
        },
      ],
    },
    {
      title: "Appearance",
      settings: [
        {
          key: "theme",
          hint: "System follows the colours of your desktop.",
          words: "appearance dark light colour color mode night",
          defaultWords: "System",
          control: {
            kind: "choice",
            options: [
              ["system", "System"],
              ["light", "Light"],
              ["dark", "Dark"],
            ],
          },
        },
        {
          key: "zoom",
          hint: "Ctrl with + and −, or with the mouse wheel, does the same.",
          words: "font text size larger smaller scale",
          defaultWords: "100 %",
          control: {
            kind: "select",
            options: ({ preferences: { value } }) =>
              withOwn(
                ZOOMS.map((zoom): Option => [zoom, `${zoom} %`]),
                value.zoom,
                `${value.zoom} %`,
              ),
          },
        },
        {
          key: "showStats",
          hint: "Tokens per second, length, and time to the first token. Otherwise they appear under the pointer.",
          words: "figures statistics tokens",
          defaultWords: "Off",
          control: { kind: "switch" },
        },
      ],
    },
  ],
  Model: [
    {
      title: "Computing",
      note: "Changes here reload the model.",
      settings: [
        {
          key: "device",
          hint: ({ model: { open } }) =>
            open
              ? `Now: ${open.device.name}. ${open.device.reason}.`
              : "Which device runs the model.",
          words: "gpu cpu graphics card vulkan metal",
          defaultWords: "Automatic",
          control: {
            kind: "select",
            options: (app) => withOwn([...devices], device(app), device(app)),
          },
          override: ({ preferences }) => preferences.overrides.device,
        },
        {
          key: "threads",
          hint: "How many processor cores to use.",
          words: "cpu cores processor",
          defaultWords: "Automatic",
          control: { kind: "number", min: 1, max: ({ preferences }) => preferences.maxThreads },
          override: ({ preferences }) => preferences.overrides.threads,
        },
        {
          key: "contextLength",
          hint: ({ model }) => contextHint(model.open),
          words: "length window memory tokens",
          defaultWords: "Automatic",
          below: true,
          control: { kind: "select", options: contextOptions, wide: true },
          override: ({ preferences }) => preferences.overrides.context,
        },
        {
          key: "kvType",
          hint: (app) => precisionHint(app.model.contexts, contextLength(app)),
          words: "kv cache quantisation f16 q8_0",
          defaultWords: "16-bit",
          control: {
            kind: "choice",
            options: [
              ["f16", "16-bit"],
              ["q8_0", "8-bit"],
            ],
          },
        },
      ],
    },
    {
      title: "Memory and files",
      settings: [
        {
          key: "unloadMinutes",
          hint: "Frees the model’s memory after this time without a message. The next message loads it again.",
          words: "eject free memory timeout ttl",
          defaultWords: "10 minutes",
          control: { kind: "select", options: idleOptions },
        },
        {
          key: "downloadFolder",
          hint: ({ preferences, models }) =>
            preferences.value.downloadFolder ??
            `${models.list?.folder ?? ""} (the Hugging Face cache, which other apps share)`,
          words: "models path directory hugging face",
          defaultWords: "the Hugging Face cache",
          control: { kind: "folder" },
        },
      ],
    },
  ],
  Answers: [
    {
      settings: [
        {
          key: "defaultPreset",
          hint: "You can choose another for each chat, in its header.",
          words: "persona character profile default",
          defaultWords: "none",
          below: true,
          control: {
            kind: "select",
            wide: true,
            also: {
              label: "Manage presets…",
              run: ({ dialogs, presets }) => {
                dialogs.settingsPage = null;
                presets.manage();
              },
            },
            options: ({ presets }) => [
              [null, "No preset"],
              ...presets.list.map(({ id, name }): Option => [id, name]),
            ],
          },
        },
        {
          key: "thinking",
          hint: "For new chats. Each chat has its own switch.",
          words: "reasoning",
          defaultWords: "On",
          when: ({ thinking }) => thinking.possible,
          control: { kind: "switch" },
        },
        {
          key: "instructions",
          hint: "What the model should know or how it should answer. They replace the model’s built-in instructions, so it may think less. A preset or a chat can have its own.",
          words: "system prompt custom persona",
          defaultWords: "none",
          below: true,
          control: {
            kind: "text",
            placeholder: "For example: Answer briefly, in British English.",
          },
        },
        {
          ...parameter("maxTokens"),
          words: "limit tokens long short",
          defaultWords: "No limit",
        },
        {
          ...parameter("thinkingBudget"),
          words: "reasoning limit tokens",
          defaultWords: "No limit",
          when: ({ thinking }) => thinking.possible,
        },
        {
          key: "lookup",
          hint: "Writes repeated text several tokens at a time. The answer is the same.",
          words: "speculative decoding prompt lookup speed",
          defaultWords: "On",
          control: { kind: "switch" },
        },
      ],
    },
    {
      title: "Sampling",
      reset: "Use the model’s defaults",
      settings: samplingSettings,
    },
  ],
  Tools: [
    {
      settings: [
        {
          key: "tools",
          hint: "The model may call these. Each chat and each preset can have its own choice. A small model confuses many tools.",
          words: "functions calls calculator python search mcp",
          defaultWords: "none",
          below: true,
          control: { kind: "tools" },
        },
        {
          key: "allowedTools",
          hint: "You chose “Always” for these. A tool that changes is asked about again.",
          words: "consent permission always allow deny ask",
          defaultWords: "none",
          below: true,
          control: { kind: "allowed" },
        },
      ],
    },
    {
      title: "Limits",
      settings: [
        {
          key: "toolRounds",
          hint: "In one answer. Then the model has to answer without tools.",
          words: "tools calls loop",
          defaultWords: "8",
          control: { kind: "number", min: 1, max: () => 32 },
        },
        {
          key: "toolSeconds",
          hint: "In seconds. Then a call is ended.",
          words: "tools timeout",
          defaultWords: "60",
          control: { kind: "number", min: 1, max: () => 3600 },
        },
        {
          key: "toolResultCharacters",
          hint: "In characters. The model is given no more of a result.",
          words: "tools output context",
          defaultWords: "6000",
          control: { kind: "number", min: 200, max: () => 100_000 },
        },
        {
          key: "serverSeconds",
          hint: "In seconds. The first start of a server may have to fetch its packages.",
          words: "tools mcp timeout",
          defaultWords: "60",
          control: { kind: "number", min: 1, max: () => 3600 },
        },
      ],
    },
  ],
  "Local API": [],
  "Chats and data": [],
  Privacy: [],
  Keyboard: [],
  About: [],
};
