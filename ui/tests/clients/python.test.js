// Clients in Python: the official one, and llm.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root, serving, skip as skipAll } from "./serving.js";

const bin = join(root, "src-tauri/target/tmp/python/bin");
const skip =
  skipAll || (!existsSync(join(bin, "llm")) && "npm test has installed no packages of Python");

/** Runs a program of the environment. Returns its output. */
function run(program, args, env) {
  const done = spawnSync(join(bin, program), args, {
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 120_000,
  });
  assert.equal(done.status, 0, done.stderr);
  return done.stdout;
}

const SCRIPT = `
import json
from openai import OpenAI, AsyncOpenAI
from pydantic import BaseModel
import asyncio

client = OpenAI(max_retries=0)
messages = [{"role": "user", "content": "Tell me about the sea."}]
brief = dict(model="any", messages=messages, max_tokens=16, reasoning_effort="none", seed=3)

whole = client.chat.completions.create(**brief).choices[0].message.content
chunks = client.chat.completions.create(stream=True, **brief)
streamed = "".join(it.choices[0].delta.content or "" for it in chunks if it.choices)
assert whole == streamed, (whole, streamed)

class Water(BaseModel):
    n: int
    salty: bool

parsed = client.chat.completions.parse(response_format=Water, **{**brief, "max_tokens": 100})
assert isinstance(parsed.choices[0].message.parsed, Water)

tool = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}}}
called = client.chat.completions.create(tools=[tool], tool_choice="required", **{**brief, "max_tokens": 100})
call = called.choices[0].message.tool_calls[0]
assert isinstance(json.loads(call.function.arguments)["a"], int)

text = client.completions.create(model="any", prompt="Once upon a time", max_tokens=8, logprobs=1)
assert text.choices[0].logprobs.tokens
response = client.responses.create(model="any", input="Hi", max_output_tokens=16, reasoning={"effort": "none"})
assert response.output_text

async def beside():
    client = AsyncOpenAI(max_retries=0)
    answers = [client.chat.completions.create(**{**brief, "seed": seed}) for seed in range(4)]
    return [it.choices[0].message.content for it in await asyncio.gather(*answers)]

assert len(asyncio.run(beside())) == 4
print("fine")
`;

test("the official client works", { skip }, async (t) => {
  const { baseURL, key } = await serving(t);
  const env = { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: key };
  assert.equal(run("python", ["-c", SCRIPT], env).trim(), "fine");
});

test("llm works", { skip }, async (t) => {
  const { baseURL, key } = await serving(t);
  const home = mkdtempSync(join(tmpdir(), "goldcrest-llm-"));
  t.after(() => rmSync(home, { recursive: true, force: true }));
  writeFileSync(
    join(home, "extra-openai-models.yaml"),
    `- model_id: goldcrest\n  model_name: any\n  api_base: ${baseURL}\n  api_key_name: goldcrest\n`,
  );
  const env = { LLM_USER_PATH: home };
  const options = [
    "-m",
    "goldcrest",
    "-s",
    "/no_think",
    "--key",
    key,
    "-o",
    "max_tokens",
    "12",
    "-o",
    "temperature",
    "0",
  ];
  const streamed = run("llm", ["prompt", ...options, "Hi"], env);
  const whole = run("llm", ["prompt", ...options, "--no-stream", "Hi"], env);
  assert.ok(whole.trim().length > 0);
  assert.equal(streamed, whole);
});
