import type { App } from "../state/app.svelte";
import { settingNames } from "../state/preferences.svelte";
import type { SettingsPage } from "../state/settings-pages";
import { boxKeys, shortcuts } from "../state/shortcuts";
import { slashCommands } from "../state/slash.svelte";
import { matches, places, terms } from "../text/query";
import { groups } from "./catalogue";
import { parts } from "./parts";

/** A search result: a setting or another part of a page. */
export type Place = {
  /** Value of `data-setting` on its element. */
  id: string;
  page: SettingsPage;
  label: string;
  hint: string;
  words?: string;
};

const others: Place[] = [
  {
    id: "defaultPreset",
    page: "Answers",
    label: "Presets",
    hint: "Instructions, thinking and sampling under a name: create, change, import, export.",
    words: "persona character profile system prompt json",
  },
  ...Object.entries(parts).map(([id, part]): Place => ({ id, ...part })),
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
];

/**
 * Finds settings and parts whose texts contain every word of the query. Matches in the name come
 * first.
 */
export function findSettings(query: string, app: App): Place[] {
  const wanted = terms(query);
  if (wanted.length === 0) return [];
  const all = [...everySetting(app), ...others];
  const scored = all.map((place) => {
    const rest = `${place.hint} ${place.words ?? ""} ${place.page}`;
    const scores = wanted.map((term) => {
      const [first] = places(place.label, [term]);
      if (first) return first[0] === 0 ? 3 : 2;
      return matches(rest, [term]) ? 1 : 0;
    });
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
      settings
        .filter(({ when }) => when?.(app) ?? true)
        .map(({ key, hint, words = "" }) => ({
          id: key,
          page: page as SettingsPage,
          label: settingNames[key],
          hint: typeof hint === "string" ? hint : hint(app),
          words: `${words} ${title}`,
        })),
    ),
  );
}
