import type { App } from "../state/app.svelte";
import { settingNames } from "../state/preferences.svelte";
import type { SettingsPage } from "../state/settings-pages";
import { boxKeys, shortcuts } from "../state/shortcuts";
import { slashCommands } from "../state/slash.svelte";
import { groups } from "./catalogue";

/** What a search can find: a setting, or what else is on a page. */
export type Place = {
  /** Of the element on the page, as `data-setting` there. */
  id: string;
  page: SettingsPage;
  label: string;
  hint: string;
  words?: string;
};

const places: Place[] = [
  {
    id: "defaultPreset",
    page: "Answers",
    label: "Presets",
    hint: "Instructions, thinking and sampling under a name: create, change, import, export.",
    words: "persona character profile system prompt json",
  },
  {
    id: "export",
    page: "Chats and data",
    label: "Export",
    hint: "All chats in one file: Markdown, HTML, or JSONL with everything.",
    words: "save download backup json",
  },
  {
    id: "import",
    page: "Chats and data",
    label: "Import",
    hint: "Chats of Goldcrest, ChatGPT, Claude, Jan and LM Studio.",
    words: "zip jsonl json load",
  },
  {
    id: "backups",
    page: "Chats and data",
    label: "Backups",
    hint: "One a day, and those that you make; each can be restored.",
    words: "copy copies restore recover save",
  },
  {
    id: "network",
    page: "Privacy",
    label: "Network connections",
    hint: "How many there are now, how that is checked, and a report to copy.",
    words: "offline internet socket telemetry report",
  },
  ...[...shortcuts, ...boxKeys].map(({ keys, name }): Place => ({
    id: `keys ${keys}`,
    page: "Keyboard",
    label: name,
    hint: keys,
    words: "shortcut key",
  })),
  ...slashCommands.map(({ name, does }): Place => ({
    id: `slash ${name}`,
    page: "Keyboard",
    label: `/${name}`,
    hint: does,
    words: "slash command",
  })),
  { id: "version", page: "About", label: "Version", hint: "Which Goldcrest this is.", words: "" },
  {
    id: "log",
    page: "About",
    label: "Log file",
    hint: "What the app has done, for finding faults.",
    words: "debug error report path",
  },
  {
    id: "licences",
    page: "About",
    label: "Licences of the software in Goldcrest",
    hint: "Each package with its texts.",
    words: "license open source copyright",
  },
];

const plain = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

/** All that has every word of the query in its name, its description, its page or its other words; by name first. */
export function findSettings(query: string, app: App): Place[] {
  const words = plain(query).split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const all = [...everySetting(app), ...places];
  const scored = all.map((place) => {
    const label = plain(place.label);
    const rest = plain(`${place.hint} ${place.words ?? ""} ${place.page}`);
    const scores = words.map((word) =>
      label.startsWith(word) ? 3 : label.includes(word) ? 2 : rest.includes(word) ? 1 : 0,
    );
    return {
      place,
      score: scores.includes(0) ? 0 : scores.reduce<number>((sum, each) => sum + each, 0),
    };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ place }) => place);
}

function everySetting(app: App): Place[] {
  return Object.entries(groups).flatMap(([page, groups]) =>
    groups.flatMap(({ title = "", settings }) =>
      settings.map(({ key, hint, words = "" }) => ({
        id: key,
        page: page as SettingsPage,
        label: settingNames[key],
        hint: typeof hint === "string" ? hint : hint(app),
        words: `${words} ${title}`,
      })),
    ),
  );
}

/** The parts of a text, and whether each is one of the words that were looked for. */
export function marked(text: string, query: string): [part: string, isHit: boolean][] {
  const words = query.split(/\s+/).filter(Boolean);
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (escaped.length === 0) return [[text, false]];
  const hit = new RegExp(`(${escaped.join("|")})`, "giu");
  return text.split(hit).map((part, at) => [part, at % 2 === 1]);
}
