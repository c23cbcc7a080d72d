import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { bundledModel, foreign, ready } from "../host/fake/library";
import { App } from "./app.svelte";

async function start(script: ConstructorParameters<typeof FakeHost>[0] = {}): Promise<App> {
  const app = new App(new FakeHost(script));
  await app.start();
  await app.tools.refresh();
  return app;
}

const settings = { tools: ["calculate", "gone"] };

test("a chat has the tools of the settings, of its preset, or its own", async () => {
  const app = await start({ settings });
  const { tools, presets } = app;
  expect([tools.count, tools.hasOwn]).toEqual([1, false]);
  const coder = presets.list.find(({ name }) => name === "Coder");
  if (!coder) throw new Error("it is not there");
  await presets.change(coder, { tools: ["run_python", "search_chats"] });
  await presets.choose(coder.id);
  expect([tools.chosen, tools.hasOwn]).toEqual([["run_python", "search_chats"], false]);
  tools.turn("run_python", false);
  tools.turn("calculate", true);
  expect([tools.chosen, tools.hasOwn]).toEqual([["search_chats", "calculate"], true]);
  tools.useUsual();
  expect(tools.chosen).toEqual(["run_python", "search_chats"]);
});

test("switches turned in a row all reach the host", async () => {
  const host = new FakeHost();
  const app = new App(host);
  await app.start();
  for (const name of ["calculate", "run_python", "search_chats"]) app.tools.turn(name, true);
  await app.presets.chooseTools(app.tools.chosen);
  const sent = host.calls.filter(([name]) => name === "choosePreset");
  expect(sent.at(-1)?.[2]).toMatchObject({ tools: ["calculate", "run_python", "search_chats"] });
});

test("a change of the instructions keeps the tools, and the reverse", async () => {
  const app = await start();
  const { presets, tools } = app;
  presets.instruct("Be brief.");
  tools.turn("calculate", true);
  await presets.flush();
  await presets.chooseTools(tools.chosen);
  expect([presets.own, tools.chosen]).toEqual(["Be brief.", ["calculate"]]);
  presets.instruct("Be long.");
  await presets.flush();
  expect([presets.own, tools.chosen]).toEqual(["Be long.", ["calculate"]]);
});

test("another preset without tools of its own keeps those of the chat", async () => {
  const app = await start();
  const { presets, tools } = app;
  await presets.chooseTools(["calculate"]);
  await presets.choose(1);
  expect(tools.chosen).toEqual(["calculate"]);
});

test("a refused choice is taken back", async () => {
  const host = new FakeHost();
  const app = new App(host);
  await app.start();
  host.choosePreset = () => Promise.reject({ code: "other", message: "Too many tools." });
  await app.presets.chooseTools(["calculate"]);
  expect([app.tools.chosen, app.notices.list.at(-1)?.text]).toEqual([[], "Too many tools."]);
});

test("a model without tools says why", async () => {
  const small = await start({ model: ready(bundledModel), settings });
  expect(small.tools.refusal).toMatch(/small model that comes with Goldcrest has no tools/);
  expect(small.tools.count).toBe(0);
  const other = await start({ model: ready(foreign), settings });
  expect(other.tools.refusal).toBe("This model was not trained to call tools.");
});

test("the servers that may use the network are named", async () => {
  const { servers } = await import("../host/fake/tools");
  const app = await start({ servers });
  await app.servers.refresh();
  expect(app.servers.networkWords).toBe("“weather” may use the network.");
  const notes = app.servers.configs.find(({ name }) => name === "notes");
  if (!notes) throw new Error("it is not there");
  await app.servers.put({ ...notes, enabled: true }, "notes");
  expect(app.servers.networkWords).toBe("“weather” and “notes” may use the network.");
  expect(await app.servers.put({ ...notes, name: "files" }, "notes")).toBe(
    "There is already a server “files”.",
  );
});
