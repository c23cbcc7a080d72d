import { beforeEach, expect, test, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { App } from "./app.svelte";
import { commands, offerCommands } from "./commands";
import { read, slashCommands } from "./slash.svelte";

let host: FakeHost;
let app: App;

beforeEach(async () => {
  host = new FakeHost({ rate: 4000, readingMs: 0 });
  app = new App(host);
  offerCommands(app);
  await app.start();
});

function type(text: string): void {
  app.composer.write(text);
  app.slash.typed(text);
}

async function send(text: string): Promise<void> {
  type(text);
  await app.sending.send();
}

const choices = (): string[] => app.slash.choices.map(({ text }) => text);

const sent = (): unknown[] => host.calls.filter(([name]) => name === "send").map((call) => call[2]);

test.each([
  ["/new", "new", ""],
  ["/NEW \n", "new", ""],
  ["/no-think", "no_think", ""],
  ["/think  Why is it so?\nSay more. ", "think", "Why is it so?\nSay more."],
  ["/theme Dark", "theme", "dark"],
  ["/regenerate", "regenerate", ""],
  ["/regenerate No thinking", "regenerate", "no thinking"],
])("%j is a command", (text, name, argument) => {
  expect(read(text)).toMatchObject({ type: "command", command: { name }, argument });
});

test.each([
  ["/etc/hosts is what?", "/etc/hosts is what?"],
  ["/", "/"],
  ["/ alone", "/ alone"],
  ["/2 is half", "/2 is half"],
  ["/élan", "/élan"],
  ["// a comment", "// a comment"],
  ["//todo: mend", "//todo: mend"],
  ["//new is a command", "/new is a command"],
  [" /new", " /new"],
  ["What is /new?", "What is /new?"],
])("%j is a message", (text, message) => {
  expect(read(text)).toEqual({ type: "message", text: message });
});

test.each([
  ["/ne now", "There is no command /ne."],
  // Only works in the terminal.
  ["/quit", "There is no command /quit."],
  ["/new car", "/new takes nothing behind it."],
  ["/theme pink", "/theme takes one of these: system, light, dark."],
  ["/theme", "/theme takes one of these: system, light, dark."],
  [
    "/regenerate briefly",
    "/regenerate takes one of these: shorter, longer, thinking, no thinking.",
  ],
])("%j is refused", (text, why) => {
  expect(read(text)).toEqual({ type: "refused", why });
});

test("the window does all commands of the table that work in it, each once", () => {
  const done = commands.flatMap(({ slash }) => slash ?? []);
  expect(done.toSorted()).toEqual(slashCommands.map(({ name }) => name).toSorted());
});

test("the menu filters as one types, and is closed by what is no command", () => {
  type("/");
  const cannot = ["/regenerate", "/continue", "/summarize", "/export", "/clear"];
  expect(choices(), "in an empty chat").toEqual(
    slashCommands.map(({ name }) => `/${name}`).filter((name) => !cannot.includes(name)),
  );
  type("/th");
  expect(choices()).toEqual(["/think", "/theme"]);
  type("/theme ");
  expect(choices()).toEqual(["/theme system", "/theme light", "/theme dark"]);
  type("/theme d");
  expect(choices()).toEqual(["/theme dark"]);
  for (const text of ["/etc/hosts", "/xy", "a /new", "", "/think why", "/new\nline"]) {
    type(text);
    expect(choices(), text).toEqual([]);
  }
});

test("the models of this computer are offered, and opened by name", async () => {
  await app.models.refresh();
  type("/model ");
  expect(choices().length).toBeGreaterThan(0);
  const [first] = choices();
  const opened = vi.spyOn(app.models, "open").mockResolvedValue();
  const name = first?.slice("/model ".length) ?? "";
  if (app.models.named(name).length === 1) {
    await send(first ?? "");
    await vi.waitFor(() => expect(opened).toHaveBeenCalled());
  }
  await send("/model nosuchmodel");
  await vi.waitFor(() => expect(app.models.shown).toBe(true));
  expect(app.models.outcome?.text).toContain("nosuchmodel");
});

test("a choice that something has to follow is written into the box, another one is run", () => {
  type("/the");
  app.slash.choose(app.slash.choices[0] as never);
  expect(app.composer.text).toBe("/theme ");
  app.slash.step(-1);
  app.slash.choose(app.slash.choices[app.slash.at] as never);
  expect(app.preferences.value.theme).toBe("dark");
  expect(app.composer.text).toBe("");
});

test("after Escape the text stays, and is a message", async () => {
  type("/new");
  app.slash.dismiss();
  expect(choices()).toEqual([]);
  expect(app.composer.text).toBe("/new");
  await app.sending.send();
  expect(sent()).toEqual(["/new"]);
  type("/");
  expect(choices()).not.toEqual([]);
});

test("a message that begins with a slash can be sent", async () => {
  await send("//new is what?");
  await send("/etc/hosts is what?");
  expect(sent()[0]).toBe("/new is what?");
});

test("what is no command loses nothing, and can be sent as it is", async () => {
  await send("/foo is what?");
  expect(app.composer.text).toBe("/foo is what?");
  expect(sent()).toEqual([]);
  const [notice] = app.notices.list;
  expect(notice?.text).toBe("There is no command /foo.");
  notice?.action?.run();
  await vi.waitFor(() => expect(sent()).toEqual(["/foo is what?"]));
});

test("commands about an answer say so where there is none", async () => {
  for (const text of ["/regenerate", "/continue"]) {
    await send(text);
    expect(app.notices.list.at(-1)?.text).toBe("There is no finished answer in this chat.");
    expect(app.composer.text).toBe(text);
  }
});

test("the last answer is written again", async () => {
  await send("Tell me a story");
  await vi.waitFor(() => expect(app.conversation.writing).toBe(false));
  const regenerate = vi.spyOn(host, "regenerate");
  await send("/regenerate");
  await vi.waitFor(() => expect(regenerate).toHaveBeenCalled());
  await vi.waitFor(() => expect(app.conversation.writing).toBe(false));
  await send("/regenerate shorter");
  const answer = regenerate.mock.lastCall?.[0];
  await vi.waitFor(() => expect(regenerate).toHaveBeenLastCalledWith(answer, true, "shorter"));
});

test("thinking is switched, and what stands behind it is sent", async () => {
  await send("/no_think");
  expect(app.thinking.on).toBe(false);
  await send("/think Why?");
  expect(app.thinking.on).toBe(true);
  await vi.waitFor(() => expect(sent()).toEqual(["Why?"]));
  await vi.waitFor(() => expect(app.conversation.writing).toBe(false));
  await send("/think /new");
  await vi.waitFor(() => expect(sent()).toEqual(["Why?", "/new"]));
});

test("starting over leaves the chat in the list, and the way back to it", async () => {
  const [chat] = app.chats.list;
  await app.navigation.open(chat?.id ?? 0);
  await send("/clear");
  expect(app.conversation.chat).toBeNull();
  expect(app.chats.list.map(({ id }) => id)).toContain(chat?.id);
  app.notices.list.at(-1)?.action?.run();
  await vi.waitFor(() => expect(app.conversation.chat).toBe(chat?.id));
  expect(app.composer.text).toBe("");
});

test("what was pasted stays when a command is run", async () => {
  app.composer.paste("x".repeat(30_000));
  await send("/no_think");
  expect(app.composer.pastes).toHaveLength(1);
  expect(app.composer.text).toBe("");
});

test("the status names the model, its device, the context and the network connections", async () => {
  await send("/status");
  await vi.waitFor(() =>
    expect(app.notices.list.at(-1)?.text).toMatch(
      / on CPU.*Context: 0 of [\d,]+ tokens\. Network connections: 0\.$/u,
    ),
  );
});
