import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { App } from "./app.svelte";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

async function start(host = new FakeHost({ rate: 4000, readingMs: 0 })): Promise<App> {
  const app = new App(host);
  await app.start();
  return app;
}

function must<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("it is not there");
  return value;
}

const coder = (app: App): number => app.presets.list.find(({ name }) => name === "Coder")?.id ?? 0;

test("a preset that is chosen for a chat stays with it, and switches its thinking", async () => {
  const app = await start();
  const [chat, other] = app.chats.list.map(({ id }) => id);
  await app.navigation.open(chat ?? 0);
  app.thinking.wanted = false;
  await app.presets.choose(coder(app));
  expect([app.presets.name, app.thinking.wanted]).toEqual(["Coder", true]);
  await app.navigation.open(other ?? 0);
  expect(app.presets.name).toBe("No preset");
  await app.navigation.open(chat ?? 0);
  expect(app.presets.name).toBe("Coder");
  await app.history.undo();
  expect(app.presets.name).toBe("No preset");
});

test("a new chat begins with the default preset, and keeps what is chosen for it", async () => {
  const app = await start();
  app.navigation.newChat();
  app.preferences.change({ defaultPreset: coder(app) });
  expect(app.presets.name).toBe("Coder");
  const editor = app.presets.list.find(({ name }) => name === "Editor");
  await app.presets.choose(editor?.id ?? 0);
  app.composer.write("Hello?");
  await app.sending.send();
  expect([app.conversation.chat, app.presets.name]).toEqual([expect.any(Number), "Editor"]);
  app.navigation.newChat();
  expect(app.presets.name).toBe("Coder");
  await app.presets.remove(must(app.presets.find(coder(app))));
  expect(app.presets.name).toBe("No preset");
});

test("instructions that were just typed are there for the message that is sent", async () => {
  const host = new FakeHost({ rate: 4000, readingMs: 0 });
  const app = await start(host);
  app.navigation.newChat();
  app.presets.instruct("R");
  app.presets.instruct("Rhyme.");
  expect(host.calls.some(([verb]) => verb === "choosePreset")).toBe(false);
  app.composer.write("Hello?");
  await app.sending.send();
  const verbs = host.calls.filter(([verb]) => ["choosePreset", "send"].includes(verb));
  expect(verbs).toMatchObject([
    ["choosePreset", null, { preset: null, instructions: "Rhyme." }],
    ["send", null, "Hello?", true],
  ]);
  expect(app.presets.chosen.instructions).toBe("Rhyme.");
  await app.presets.choose(coder(app));
  expect(app.presets.hasOwn).toBe(false);
});

test("a preset is made of how the chat is answered", async () => {
  const host = new FakeHost();
  const app = await start(host);
  app.preferences.set("topK", 7);
  await app.presets.choose(coder(app));
  app.presets.instruct("Rhyme.");
  expect(await app.presets.saveChatAs("Poet", false)).toBe(true);
  const made = app.presets.current;
  expect(made).toMatchObject({ name: "Poet", instructions: "Rhyme.", thinking: false });
  expect(made?.sampling).toMatchObject({ temperature: 0.3, topK: 7, topP: null });
  expect(app.presets.hasOwn).toBe(false);
  expect(await app.presets.saveChatAs(" ", false)).toBe(false);
  expect(app.notices.list.at(-1)?.text).toBe("The name of a preset cannot be empty.");
});

test("a name that another preset has is refused, and a copy gets a number", async () => {
  const app = await start();
  const [one, two] = app.presets.list;
  if (!one || !two) throw new Error("there are two");
  const refused = await app.presets.change(one, { name: two.name });
  expect(refused).toBe("There is a preset “Editor” already. Choose another name.");
  await app.presets.add(one);
  expect(app.presets.find(app.presets.selected)?.name).toBe("Coder 2");
  await app.presets.import();
  expect(app.notices.list.at(-1)?.text).toBe("Imported “Tutor”.");
});

test("a preset that is deleted leaves its chats on the settings until it is back", async () => {
  const app = await start();
  await app.navigation.open(app.chats.list[0]?.id ?? 0);
  const preset = must(app.presets.find(coder(app)));
  await app.presets.choose(preset.id);
  app.presets.manage();
  expect(app.presets.selected).toBe(preset.id);
  await app.presets.remove(preset);
  expect([app.presets.name, app.presets.selected]).toEqual(["No preset", expect.any(Number)]);
  app.notices.list.at(-1)?.action?.run();
  await vi.advanceTimersByTimeAsync(0);
  expect(app.presets.name).toBe("Coder");
});

test("a change of a preset is made to what the change before it leaves, though that is still being saved", async () => {
  const host = new FakeHost();
  const app = await start(host);
  const save = host.savePreset.bind(host);
  host.savePreset = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    return save(...given);
  };
  const preset = must(app.presets.find(coder(app)));
  void app.presets.change(preset, { instructions: "Rhyme." });
  void app.presets.change(preset, { thinking: false });
  void app.presets.change(preset, { sampling: { topK: 5 } });
  void app.presets.change(preset, { sampling: { topP: 0.5 } });
  await vi.advanceTimersByTimeAsync(2000);
  expect(app.presets.find(preset.id)).toMatchObject({
    ...{ instructions: "Rhyme.", thinking: false },
    sampling: { topK: 5, topP: 0.5 },
  });
});
