// npm run bench:api -- --model FILE [--peer URL] [--clients 1,2,4,8] [--rounds 2]: speed of the local
// API with clients that ask at once, in alternating rounds with another server that has the same model,
// and the time to the first token of requests with a long shared prefix. Release build.
import { join } from "node:path";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    peer: { type: "string" },
    clients: { type: "string", default: "1,2,4,8" },
    rounds: { type: "string", default: "2" },
  },
});
const PROMPT_TOKENS = 256;
const ANSWER_TOKENS = 128;
const PREFIX_TOKENS = 2_000;

process.env.GOLDCREST_BINARY ??= join(
  ...[import.meta.dirname, "..", "..", "..", "src-tauri", "target", "release", "goldcrest"],
);
const { serving } = await import("./serving.js");
const ends = [];
const t = { after: (end) => ends.push(end) };
const own = await serving(t, ...(values.model ? ["--model", values.model] : []));
const servers = [{ name: "Goldcrest", ...own }];
if (values.peer) servers.push({ name: values.peer, baseURL: values.peer, key: "none" });

async function tokens(content) {
  const reply = await fetch(new URL("/tokenize", own.baseURL), {
    method: "POST",
    headers: { authorization: `Bearer ${own.key}`, "content-type": "application/json" },
    body: JSON.stringify({ content }),
  });
  return (await reply.json()).count;
}

let asked = 0;
const wordsPerToken = 64 / (await tokens(words(64)));

/** A prompt of about this number of tokens that begins like no other. */
function prompt(tokens) {
  return words(Math.round(tokens * wordsPerToken));
}

function words(count) {
  const all = "the river runs over stones and sand to a wide sea under low clouds".split(" ");
  const start = String(++asked).padStart(4, "0").split("");
  return [
    ...start,
    ...Array.from({ length: count }, (_, at) => all[(at * at + at + asked) % all.length]),
  ].join(" ");
}

/** Streams an answer. Returns its tokens and, in seconds, the time to the first. */
async function answer({ baseURL, key }, prompt, tokens) {
  const begun = performance.now();
  const reply = await fetch(`${baseURL}/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      prompt,
      max_tokens: tokens,
      temperature: 1,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!reply.ok) throw new Error(`${baseURL}: ${reply.status} ${await reply.text()}`);
  let first;
  let said = "";
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    said += chunk;
    if (/"text": ?"[^"]/.test(said)) first ??= (performance.now() - begun) / 1000;
  }
  const events = said.split("data: ").filter((event) => event.startsWith("{"));
  const { usage } = events.map((event) => JSON.parse(event)).findLast((event) => event.usage);
  // An answer may have no text.
  first ??= (performance.now() - begun) / 1000;
  return { first, read: usage.prompt_tokens, written: usage.completion_tokens };
}

/** Asks with each prompt at once. */
async function measure(server, prompts) {
  const clients = prompts.length;
  const begun = performance.now();
  const answers = await Promise.all(prompts.map((prompt) => answer(server, prompt, ANSWER_TOKENS)));
  const seconds = (performance.now() - begun) / 1000;
  const written = answers.reduce((sum, { written }) => sum + written, 0);
  const sorted = answers.map(({ first }) => first).sort((a, b) => a - b);
  const median = sorted[(sorted.length - 1) >> 1];
  console.log(
    `${server.name}, ${clients} clients: ${(written / seconds).toFixed(1)} tokens/s, ` +
      `first token ${median.toFixed(2)} s (median), ` +
      `prompts of ${answers[0].read}, answers of ${(written / clients).toFixed(0)} tokens`,
  );
}

try {
  for (const server of servers) await answer(server, prompt(8), 8);
  for (const clients of values.clients.split(",").map(Number))
    for (let round = 0; round < Number(values.rounds); round++) {
      const prompts = Array.from({ length: clients }, () => prompt(PROMPT_TOKENS));
      for (const server of servers) await measure(server, prompts);
    }
  const prefix = prompt(PREFIX_TOKENS);
  const firsts = [];
  for (const end of ["One", "Two", "Three"])
    firsts.push((await answer(servers[0], `${prefix} ${end}`, 16)).first.toFixed(2));
  console.log(`Goldcrest, a shared prefix of ${PREFIX_TOKENS} tokens: ${firsts.join(", ")} s`);
} finally {
  for (const end of ends) end();
}
