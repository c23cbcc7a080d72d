// npm run load:clients [-- MINUTES]: sixteen clients that come, go and abort. Prints memory and open
// files of both programs each minute; exits with 1 if an answer was not whole.
import { readFileSync, readdirSync } from "node:fs";
import { serving } from "./serving.js";

const minutes = Number(process.argv[2] ?? 20);
const CLIENTS = 16;
const ends = [];
const { baseURL, key, child } = await serving({ after: (end) => ends.push(end) });
const until = Date.now() + minutes * 60_000;
const counts = { whole: 0, streamed: 0, aborted: 0, refused: 0, wrong: 0 };
/** Posts a request, which ends after `timeout` milliseconds. */
function post(body, timeout) {
  return fetch(`${baseURL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(timeout),
  });
}

async function ask(client, number) {
  const seed = number % 50;
  const stream = number % 2 === 0;
  const aborts = number % 3 === 0;
  const body = {
    messages: [{ role: "user", content: `Question ${seed} about the sea?` }],
    user: `client ${client}`,
    reasoning_effort: "none",
    temperature: 0,
    max_tokens: 20 + seed,
    stream,
    stream_options: { include_usage: true },
  };
  try {
    const reply = await post(body, aborts ? 5 + Math.floor(Math.random() * 300) : 120_000);
    if (reply.status === 429) {
      await reply.text();
      counts.refused++;
      return;
    }
    const text = await reply.text();
    const usage = stream ? JSON.parse(text.split("data: ").at(-2)).usage : JSON.parse(text).usage;
    const isWhole = !stream || text.trimEnd().endsWith("[DONE]");
    if (isWhole && usage.completion_tokens > 0) counts[stream ? "streamed" : "whole"]++;
    else {
      counts.wrong++;
      console.log(`wrong: ${text}`);
    }
  } catch (error) {
    if (aborts && error.name === "TimeoutError") counts.aborted++;
    else {
      counts.wrong++;
      console.log(`${error.name}: ${error.message} ${error.cause ?? ""}`);
    }
  }
}

/** Resident memory in MB and open files of a process. */
function usage(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(status);
  return { mb: Math.round(kilobytes / 1024), files: readdirSync(`/proc/${pid}/fd`).length };
}

const [served] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ");
const pids = { goldcrest: child.pid, "goldcrest-serve": served || findServe(child.pid) };

function findServe(parent) {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      if (status.includes(`PPid:\t${parent}\n`)) return pid;
    } catch {
      // It has ended meanwhile.
    }
}

const began = Date.now();
const report = setInterval(() => {
  const figures = Object.entries(pids).map(
    ([name, pid]) => `${name} ${JSON.stringify(usage(pid))}`,
  );
  const minute = ((Date.now() - began) / 60_000).toFixed(0);
  console.log(`minute ${minute}: ${figures.join(", ")}, ${JSON.stringify(counts)}`);
}, 60_000);
await Promise.all(
  Array.from({ length: CLIENTS }, async (_, client) => {
    for (let number = client; Date.now() < until; number += 7) await ask(client, number);
  }),
);
clearInterval(report);
const figures = Object.entries(pids).map(([name, pid]) => `${name} ${JSON.stringify(usage(pid))}`);
console.log(`end: ${figures.join(", ")}, ${JSON.stringify(counts)}`);
for (const end of ends) end();
process.exitCode = counts.wrong ? 1 : 0;
