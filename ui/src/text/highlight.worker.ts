import hljs from "highlight.js/lib/common";
import type { Job, Reply } from "./highlighter";
import { cutRuns, runsOf } from "./runs";

// Some grammars take quadratic or cubic time. Here they block only this thread, which the page
// terminates after a timeout.
const say = (reply: Reply): void => postMessage(reply);

addEventListener("message", ({ data }: MessageEvent<Job>) => {
  const { code, language, lengths } = data;
  const { value } = hljs.highlight(code, { language, ignoreIllegals: true });
  // One message per piece, so that the page never renders much at once.
  for (const [index, runs] of cutRuns(runsOf(value), lengths).entries()) say({ index, runs });
  say("done");
});
say("ready");
