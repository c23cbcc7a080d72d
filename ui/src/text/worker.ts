import { Highlighter, type Reply } from "./highlighter";
import url from "./highlight.worker?worker&url";

// Trusted Types require a policy for a worker's URL. This one is created before any other script
// can do so, and allows a single URL.
const policy = window.trustedTypes?.createPolicy("goldcrest-worker", {
  createScriptURL: (address: string) => {
    if (address !== url) throw new TypeError(`${address} is no worker of this page`);
    return address;
  },
});

/** The page's single highlighter. */
export const highlighter = new Highlighter((onReply) => {
  const address = policy?.createScriptURL(url) ?? url;
  const worker = new Worker(address as unknown as string, { type: "module" });
  worker.addEventListener("message", ({ data }: MessageEvent<Reply>) => onReply(data));
  worker.addEventListener("error", () => onReply("failed"));
  return { post: (job) => worker.postMessage(job), end: () => worker.terminate() };
});
