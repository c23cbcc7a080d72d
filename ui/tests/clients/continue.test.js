// The client of Continue, which is in VS Code and in JetBrains' editors.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { root, serving, skip as skipAll } from "./serving.js";

const folder = join(
  root,
  "src-tauri/target/tmp/continue/node_modules/@continuedev/openai-adapters",
);
const skip = skipAll || (!existsSync(folder) && "npm test has not installed Continue's client");

test("an editor's chat and completion work", { skip }, async (t) => {
  const { baseURL, key } = await serving(t);
  const { constructLlmApi } = await import(pathToFileURL(join(folder, "dist/index.js")).href);
  const api = constructLlmApi({ provider: "openai", apiBase: `${baseURL}/`, apiKey: key });
  const { signal } = new AbortController();
  const asked = {
    model: "any",
    messages: [{ role: "user", content: "Hi" }],
    max_tokens: 12,
    reasoning_effort: "none",
  };
  const whole = await api.chatCompletionNonStream({ ...asked, stream: false }, signal);
  assert.ok(whole.choices[0].message.content.length > 0);
  let streamed = "";
  for await (const chunk of api.chatCompletionStream({ ...asked, stream: true }, signal))
    streamed += chunk.choices[0]?.delta.content ?? "";
  assert.ok(streamed.length > 0);
  let completed = "";
  const prompt = { model: "any", prompt: "function add(", max_tokens: 8, stream: true };
  for await (const chunk of api.completionStream(prompt, signal))
    completed += chunk.choices[0]?.text ?? "";
  assert.ok(completed.length > 0);
});
