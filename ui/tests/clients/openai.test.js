// The official client for Node.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { serving, skip } from "./serving.js";

const messages = [{ role: "user", content: "Tell me about the sea." }];
const brief = { model: "any", messages, max_tokens: 24, reasoning_effort: "none", seed: 3 };
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Returns the weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 12 }, days: { type: "integer" } },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
};

async function client(t) {
  const { baseURL, key } = await serving(t);
  return new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
}

test("models are listed", { skip }, async (t) => {
  const openai = await client(t);
  const models = [];
  for await (const model of await openai.models.list()) models.push(model);
  assert.equal(models.length, 1);
  assert.ok(models[0].id.length > 0);
});

test("an answer is the same whole and streamed", { skip }, async (t) => {
  const openai = await client(t);
  const whole = await openai.chat.completions.create(brief);
  const text = whole.choices[0].message.content;
  assert.equal(whole.usage.completion_tokens, 24);
  assert.equal(whole.choices[0].finish_reason, "length");
  const options = { include_usage: true };
  const stream = await openai.chat.completions.create({
    ...brief,
    stream: true,
    stream_options: options,
  });
  let streamed = "";
  let usage;
  for await (const chunk of stream) {
    streamed += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(streamed, text);
  assert.equal(usage.completion_tokens, 24);
  assert.ok(usage.prompt_tokens_details.cached_tokens > 0, "the second prompt is cached");
});

test("an answer thinks, stops before a text, and has logarithms", { skip }, async (t) => {
  const openai = await client(t);
  const thinks = await openai.chat.completions.create({
    ...brief,
    reasoning_effort: "low",
    temperature: 1.5,
  });
  assert.ok(thinks.choices[0].message.reasoning_content.length > 0);
  const [whole] = (await openai.chat.completions.create(brief)).choices;
  const stop = whole.message.content.slice(8, 12);
  const stopped = await openai.chat.completions.create({ ...brief, stop });
  const text = stopped.choices[0].message.content;
  assert.equal(text, whole.message.content.slice(0, whole.message.content.indexOf(stop)));
  assert.equal(stopped.choices[0].finish_reason, "stop");
  const [said] = (
    await openai.chat.completions.create({ ...brief, logprobs: true, top_logprobs: 2 })
  ).choices;
  const tokens = said.logprobs.content;
  assert.equal(tokens.map((it) => it.token).join(""), said.message.content);
  for (const it of tokens) {
    assert.equal(it.top_logprobs.length, 2);
    assert.ok(it.logprob <= 0 && it.top_logprobs[0].logprob >= it.logprob);
  }
});

test("tools are called, and their results are taken", { skip }, async (t) => {
  const openai = await client(t);
  const asked = { ...brief, max_tokens: 200, tools: [weather], tool_choice: "required" };
  const [choice] = (await openai.chat.completions.create(asked)).choices;
  assert.equal(choice.finish_reason, "tool_calls");
  for (const call of choice.message.tool_calls) {
    const { city, days } = JSON.parse(call.function.arguments);
    assert.equal(call.function.name, "get_weather");
    assert.ok(typeof city === "string" && Number.isInteger(days));
  }
  const result = { role: "tool", tool_call_id: choice.message.tool_calls[0].id, content: "Rain" };
  const next = await openai.chat.completions.create({
    ...brief,
    messages: [...messages, choice.message, result],
    tools: [weather],
    tool_choice: "none",
  });
  assert.equal(next.choices[0].message.tool_calls, undefined);
  const runner = openai.chat.completions.stream(asked);
  const final = await runner.finalChatCompletion();
  const [streamed] = final.choices[0].message.tool_calls;
  JSON.parse(streamed.function.arguments);
});

test("an answer keeps to a schema", { skip }, async (t) => {
  const openai = await client(t);
  const schema = {
    type: "object",
    properties: { n: { type: "integer" }, kind: { enum: ["sea", "lake"] } },
    required: ["n", "kind"],
    additionalProperties: false,
  };
  const format = { type: "json_schema", json_schema: { name: "water", schema, strict: true } };
  const asked = { ...brief, max_tokens: 100, temperature: 1.5, response_format: format };
  for (let seed = 0; seed < 5; seed++) {
    const [choice] = (await openai.chat.completions.create({ ...asked, seed })).choices;
    const { n, kind } = JSON.parse(choice.message.content);
    assert.ok(Number.isInteger(n) && ["sea", "lake"].includes(kind));
  }
});

test("an answer is a call or keeps to a schema", { skip }, async (t) => {
  const openai = await client(t);
  const schema = {
    type: "object",
    properties: { grams: { type: "integer" } },
    required: ["grams"],
    additionalProperties: false,
  };
  const response_format = { type: "json_schema", json_schema: { name: "weight", schema } };
  for (const seed of [1, 2, 3, 4]) {
    const { message } = (
      await openai.chat.completions.create({
        ...brief,
        ...{ seed, temperature: 1, max_tokens: 200, tools: [weather], response_format },
      })
    ).choices[0];
    if (message.tool_calls) {
      const { name, arguments: text } = message.tool_calls[0].function;
      assert.equal(name, "get_weather");
      assert.ok(Number.isInteger(JSON.parse(text).days));
    } else assert.deepEqual(Object.keys(JSON.parse(message.content)), ["grams"]);
  }
});

test("responses are whole, streamed and call tools", { skip }, async (t) => {
  const openai = await client(t);
  const asked = {
    model: "any",
    input: "Tell me about the sea.",
    instructions: "Be brief.",
    max_output_tokens: 24,
    reasoning: { effort: "none" },
  };
  const whole = await openai.responses.create(asked);
  assert.ok(whole.output_text.length > 0);
  assert.equal(whole.status, "incomplete");
  let streamed = "";
  for await (const event of await openai.responses.create({ ...asked, stream: true }))
    if (event.type === "response.output_text.delta") streamed += event.delta;
  assert.ok(streamed.length > 0);
  const { function: tool } = weather;
  const called = await openai.responses.create({
    ...asked,
    max_output_tokens: 200,
    tools: [{ type: "function", strict: true, ...tool }],
    tool_choice: "required",
  });
  const [call] = called.output.filter((it) => it.type === "function_call");
  JSON.parse(call.arguments);
});

test("a request that is aborted ends, and the next one is answered", { skip }, async (t) => {
  const openai = await client(t);
  const abort = new AbortController();
  const long = { ...brief, max_tokens: 1500, stream: true };
  const stream = await openai.chat.completions.create(long, { signal: abort.signal });
  let chunks = 0;
  await assert.rejects(async () => {
    for await (const chunk of stream) {
      chunks += chunk.choices.length;
      if (chunks === 5) abort.abort();
    }
    abort.signal.throwIfAborted();
  });
  const after = await openai.chat.completions.create({ ...brief, max_tokens: 3 });
  assert.equal(after.usage.completion_tokens, 3);
});

test("a streamed answer has its end when the program ends", { skip }, async (t) => {
  const { baseURL, key, child } = await serving(t);
  const reply = await fetch(`${baseURL}/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ prompt: "The sea", stream: true, temperature: 1, max_tokens: 4000 }),
  });
  let text = "";
  for await (const chunk of reply.body.pipeThrough(new TextDecoderStream())) {
    if (text === "") child.kill("SIGINT");
    text += chunk;
  }
  const last = text.trimEnd().split("\n\n").at(-1);
  assert.match(last, /^data: (\[DONE\]|\{"error":.*closed or changed)/);
});

test("errors are the client's own", { skip }, async (t) => {
  const { baseURL, key } = await serving(t);
  const wrong = new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(wrong.models.list(), OpenAI.AuthenticationError);
  const openai = new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
  const long = [{ role: "user", content: "word ".repeat(5000) }];
  await assert.rejects(
    openai.chat.completions.create({ ...brief, messages: long }),
    (error) => error instanceof OpenAI.BadRequestError && error.code === "context_length_exceeded",
  );
  await assert.rejects(
    openai.chat.completions.create({ ...brief, temperature: 9 }),
    (error) => error instanceof OpenAI.BadRequestError && error.param === "temperature",
  );
});
