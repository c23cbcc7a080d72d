import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Notices } from "./notices.svelte";
import { Preferences } from "./preferences.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const make = (): { host: FakeHost; preferences: Preferences } => {
  const host = new FakeHost();
  return { host, preferences: new Preferences(host, new Notices()) };
};

test("the host's answer does not undo what was changed since", async () => {
  const { host, preferences } = make();
  const save = host.saveSettings.bind(host);
  host.saveSettings = async (settings) => {
    const saved = await save(settings);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return { ...saved, threads: 4 };
  };
  preferences.change({ theme: "dark" });
  await vi.advanceTimersByTimeAsync(400);
  preferences.change({ theme: "light" });
  await vi.advanceTimersByTimeAsync(500);
  expect(preferences.value.theme).toBe("light");
  await vi.advanceTimersByTimeAsync(1000);
  expect(preferences.value).toMatchObject({ theme: "light", threads: 4 });
});

test("a zero is a choice of its own, not the model's default", () => {
  const { preferences } = make();
  expect(preferences.isChanged("temperature")).toBe(false);
  preferences.set("temperature", 0);
  expect(preferences.isChanged("temperature")).toBe(true);
  expect(preferences.isChanged("topP")).toBe(false);
});

test("zoom goes in steps, ends at 80 and 200 %, and is saved at once", async () => {
  const { preferences, host } = make();
  for (let step = 0; step < 9; step++) preferences.zoom(1);
  expect(preferences.value.zoom).toBe(200);
  for (let step = 0; step < 9; step++) preferences.zoom(-1);
  expect(preferences.value.zoom).toBe(80);
  preferences.zoom(0);
  expect(preferences.value.unloadMinutes).toBe(10);
  const steps = ([1, 1, -1, -1, -1] as const).map((step) => {
    preferences.zoom(step);
    return preferences.value.zoom;
  });
  expect(steps).toEqual([110, 125, 110, 100, 90]);
  preferences.zoom(0);
  await vi.advanceTimersByTimeAsync(0);
  const saved = host.calls.filter(([verb]) => verb === "saveSettings").map(([, value]) => value);
  expect(saved.at(-1)).toMatchObject({ zoom: 100 });
});

test("settings are saved one after the other, and the newest last", async () => {
  const { preferences, host } = make();
  const save = host.saveSettings.bind(host);
  let atOnce = 0;
  host.saveSettings = async (settings) => {
    atOnce += 1;
    expect(atOnce).toBe(1);
    // The first save takes longest.
    await new Promise((resolve) => setTimeout(resolve, settings.zoom === 110 ? 500 : 10));
    atOnce -= 1;
    return save(settings);
  };
  for (let step = 0; step < 5; step++) preferences.zoom(1);
  await vi.advanceTimersByTimeAsync(1000);
  expect(host.calls.at(-1)).toMatchObject(["saveSettings", { zoom: 200 }]);
});

test("each setting is reset by itself, and at once", async () => {
  const { preferences, host } = make();
  preferences.set("temperature", 0.3);
  preferences.set("topK", 5);
  preferences.set("theme", "dark");
  await preferences.reset(["temperature", "theme"]);
  expect(host.calls.at(-1)).toMatchObject([
    "saveSettings",
    { theme: "system", samplingChanges: { temperature: null, topK: 5 } },
  ]);
  expect(preferences.isChanged("topK")).toBe(true);
});

test("what the host has changed is shown, and not saved over", async () => {
  const { preferences, host } = make();
  preferences.set("unloadMinutes", 45);
  await preferences.flush();
  const undone = await host.undo();
  if (undone?.settings) preferences.take(undone.settings);
  expect(preferences.value.zoom).toBe(100);
  await vi.advanceTimersByTimeAsync(1000);
  expect(host.calls.filter(([verb]) => verb === "saveSettings")).toHaveLength(1);
});

test("settings change at once and are saved once", async () => {
  const { host, preferences } = make();
  preferences.set("temperature", 0.2);
  preferences.set("temperature", 0.3);
  preferences.change({ theme: "dark" });
  expect(preferences.value.samplingChanges.temperature).toBe(0.3);
  await vi.advanceTimersByTimeAsync(1000);
  const saved = host.calls.filter(([verb]) => verb === "saveSettings");
  expect(saved).toHaveLength(1);
  expect(saved[0]?.[1]).toMatchObject({
    theme: "dark",
    samplingChanges: { temperature: 0.3, topP: null },
  });
});
