import { fileOf, wholeName } from "../state/models.svelte";
import type { ModelEntry } from "../state/types";
import { fold } from "../text/query";
import { placeWords } from "./words";

/** Number of models above which the list has a search and groups. */
export const FEW = 8;

/** Models of one location. */
export type ModelGroup = { name: string; entries: ModelEntry[] };

/**
 * Models whose name, file or location contains all words of `filter`, grouped by location in their
 * order.
 */
export function groupsOf(entries: ModelEntry[], filter: string): ModelGroup[] {
  const words = fold(filter).split(/\s+/u).filter(Boolean);
  const groups = new Map<string, ModelEntry[]>();
  for (const entry of entries) {
    const place = placeWords(entry) ?? "";
    const text = fold(`${wholeName(entry)} ${fileOf(entry)} ${place}`);
    if (!words.every((word) => text.includes(word))) continue;
    const group = groups.get(place);
    if (group) group.push(entry);
    else groups.set(place, [entry]);
  }
  return [...groups].map(([name, entries]) => ({ name, entries }));
}
