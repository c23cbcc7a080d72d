import { fold } from "../../text/query";
import type { GuideTopic } from "../host";

/** A part of the guide, for the scripted host. */
export const guideTopics: GuideTopic[] = [
  {
    id: "new-chat",
    page: "chats",
    pageTitle: "Chats",
    title: "Start a new chat",
    answer: "Click **New chat** at the top of the sidebar, or press **Ctrl+N**.",
    details: "The draft of the chat before stays where it is.",
  },
  {
    id: "delete-chat",
    page: "chats",
    pageTitle: "Chats",
    title: "Delete a chat",
    answer: "Choose **Delete** in the menu of the chat. It stays in the **Bin** for 30 days.",
    details: "",
  },
  {
    id: "open-model",
    page: "models",
    pageTitle: "Models",
    title: "Open a model file",
    answer:
      "Choose **Open a model…** in **Models** (**Ctrl+Shift+M**), or drop the file on the window.",
    details: "Of a model in several files, choose any part.",
  },
];

/** Topic whose title is in the question. */
export const topicIn = (question: string): GuideTopic | undefined =>
  guideTopics.find(({ title }) => fold(question).includes(fold(title)));
