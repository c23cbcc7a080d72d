import { expect, test } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Help } from "./help.svelte";
import { Notices } from "./notices.svelte";

const opened = async (topic: string | null = null): Promise<{ host: FakeHost; help: Help }> => {
  const host = new FakeHost({});
  const help = new Help(host, new Notices());
  await help.show(topic);
  return { host, help };
};
const titles = ({ sections }: Help): (string | null)[] => sections.map(({ title }) => title);

test("the topics stand under the titles of their pages, and a given one is open", async () => {
  const { help } = await opened("start-a-new-chat");
  expect(titles(help)).toEqual(["Chats", "Models"]);
  expect(help.topic?.title).toBe("Start a new chat");
});

test("what is typed lists the topics that were found, without pages", async () => {
  const { help } = await opened();
  await help.search("several");
  expect(help.sections).toHaveLength(1);
  expect(titles(help)).toEqual([null]);
  expect(help.sections[0]?.topics.map(({ id }) => id)).toEqual(["select-several-chats"]);
  await help.search(" ");
  expect(titles(help)).toEqual(["Chats", "Models"]);
});

test("the answer to an earlier query does not replace that to a later one", async () => {
  const { host, help } = await opened();
  const answers: ((ids: string[]) => void)[] = [];
  host.searchGuide = () => new Promise((answer) => answers.push(answer));
  const first = help.search("n");
  const second = help.search("ne");
  answers[1]?.(["start-a-new-chat"]);
  await second;
  answers[0]?.(["open-a-model-file"]);
  await first;
  expect(help.sections[0]?.topics.map(({ id }) => id)).toEqual(["start-a-new-chat"]);
});

test("the window begins with the whole list again", async () => {
  const { help } = await opened("start-a-new-chat");
  await help.search("model");
  help.close();
  await help.show();
  expect([help.query, help.topic, help.sections.length]).toEqual(["", null, 2]);
});

test("a topic that may be meant is pointed to if that is wanted, and a failure points nowhere", async () => {
  const { host, help } = await opened();
  const title = async (unsure: boolean): Promise<string | undefined> =>
    (await help.topicOf("a question", unsure))?.title;
  host.guideAnswer = () => Promise.resolve({ type: "unsure", topic: "open-a-model-file" });
  expect(await title(true)).toBe("Open a model file");
  expect(await title(false)).toBeUndefined();
  host.guideAnswer = () => Promise.resolve({ type: "sure", topic: "open-a-model-file" });
  expect(await title(false)).toBe("Open a model file");
  host.guideAnswer = () => Promise.resolve({ type: "sure", topic: "of another version" });
  expect(await title(false)).toBeUndefined();
  host.guideAnswer = () => Promise.reject(new Error("gone"));
  expect(await title(true)).toBeUndefined();
});
