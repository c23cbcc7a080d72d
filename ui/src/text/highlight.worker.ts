import hljs from "highlight.js/lib/common";
import type { Job, Reply } from "./highlighter";
import { cutRuns, runsOf } from "./runs";

// Some grammars take quadratic or cubic time. Here that holds up nothing but this thread, which the
// page ends when it takes too long.
const say = (reply: Reply): void => postMessage(reply);

addEventListener("message", ({ data }: MessageEvent<Job>) => {
  const { code, language, lengths } = data;
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  // A message for each piece, so that the page never has much to draw at once.
  for (const [index, runs] of cutRuns(runsOf(value), lengths).entries()) say({ index, runs });
  say("done");
});
say("ready");
