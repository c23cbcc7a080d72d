import chats from "../../../../src-tauri/guide/chats.md?raw";
import models from "../../../../src-tauri/guide/models.md?raw";
import { fold } from "../../text/query";
import type { GuideTopic } from "../host";

/** Two pages of the guide, for the scripted host. */
export const guideTopics: GuideTopic[] = [
  ...topicsOf("chats", chats),
  ...topicsOf("models", models),
];

/** Topic whose title is in the question. */
export const topicIn = (question: string): GuideTopic | undefined =>
  guideTopics.find(({ title }) => fold(question).includes(fold(title)));

function topicsOf(page: string, markdown: string): GuideTopic[] {
  const [head = "", ...sections] = markdown.split("\n## ");
  return sections.map((section) => {
    const [title = "", ...blocks] = section.trim().split("\n\n");
    const [answer = "", ...details] = blocks.map((block) => block.replaceAll("\n", " "));
    const pageTitle = head.replace("# ", "").trim();
    const id = title.toLowerCase().replaceAll("'", "").replaceAll(" ", "-");
    return { id, page, pageTitle, title, answer, details: details.join("\n\n") };
  });
}
