import type { Message } from "../host";
import { textOf, thinkingOf } from "../parts";

/** A chat as HTML, like the real host's. */
export function htmlOf(title: string, branch: Message[], thinking: boolean): string {
  const text = (words: string): string => words.replace(/&/gu, "&amp;").replace(/</gu, "&lt;");
  const messages = branch.map((message) => {
    const [said, thought] = [text(textOf(message)), text(thinkingOf(message))];
    return message.role === "user"
      ? `<section class="question"><h2 class="unseen">You</h2><div class="bubble">${said}</div></section>`
      : `<section class="answer-message"><h2 class="unseen">Answer</h2>${
          thinking && thought
            ? `<details class="thinking"><summary>Thought for 4 s</summary><div>${thought}</div></details>`
            : ""
        }<div class="answer"><p>${said}</p></div></section>`;
  });
  return `<article class="chat"><header><h1>${text(title)}</h1></header>${messages.join("")}</article>`;
}
