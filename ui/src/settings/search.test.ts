import { expect, test } from "vitest";
import { settingNames } from "../state/preferences.svelte";
import { settingsPages } from "../state/settings-pages";
import { start } from "../state/started.fixture";
import { groups } from "./catalogue";
import { parts } from "./parts";
import { findSettings } from "./search";

const { app } = await start();
const found = (query: string): string[] => findSettings(query, app).map(({ label }) => label);

test("settings are found by name first, then by what they do and by other words", () => {
  expect(found("temp")[0]).toBe("Temperature");
  expect(found("system prompt")).toContain("Instructions");
  expect(found("dark")[0]).toBe("Theme");
  expect(found("GPU")).toContain("Device");
  expect(found("licènces")[0]).toBe("Licences of the software in Goldcrest");
  expect(found("find in chat")).toContain("Find in this chat");
  expect(found("offline")).toEqual(["Network connections"]);
  expect(found("sampling")).toHaveLength(6 + found("sampling presets").length);
});

test("every word has to be there, and nothing is found without one", () => {
  expect(found("zoom gpu")).toEqual([]);
  expect(found("  ")).toEqual([]);
});

test("every setting with a name has one control on one page", () => {
  const keys = Object.values(groups).flatMap((groups) =>
    groups.flatMap(({ settings }) => settings.map(({ key }) => key)),
  );
  // Sampling settings are stored value by value.
  const elsewhere = ["samplingChanges"];
  expect([...keys, ...elsewhere].sort()).toEqual(Object.keys(settingNames).sort());
  expect(Object.keys(groups)).toEqual([...settingsPages]);
});

test("all that a page shows is found by its name", () => {
  const pages = import.meta.glob<string>("./*.svelte", {
    query: "?raw",
    import: "default",
    eager: true,
  });
  const shown = Object.values(pages).flatMap((page) =>
    [...page.matchAll(/(?:data-setting|<Field\s+name)="(\w+)"/gu)].map(([, id]) => id ?? ""),
  );
  expect(shown.toSorted()).toEqual(Object.keys(parts).toSorted());
  for (const [id, { label }] of Object.entries(parts))
    expect(findSettings(label, app).map((place) => place.id)).toContain(id);
});
