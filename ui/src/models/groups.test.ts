import { expect, test } from "vitest";
import { onDisk, q4 } from "../state/models.fixture";
import type { ModelEntry } from "../state/types";
import { groupsOf } from "./groups";

const model = (name: string, place: NonNullable<ModelEntry["place"]>): ModelEntry => ({
  ...onDisk(q4, `/models/${name}.gguf`, place),
  name,
});
const models = [
  model("Llama 3.2 3B", "lm-studio"),
  model("Qwen 3 4B", "ollama"),
  model("SmolLM2 1.7B", "lm-studio"),
];
const names = (filter: string): [string, string[]][] =>
  groupsOf(models, filter).map(({ name, entries }) => [name, entries.map((each) => each.name)]);

test("models are grouped by their places, the one that comes first leads", () => {
  expect(names("")).toEqual([
    ["LM Studio", ["Llama 3.2 3B", "SmolLM2 1.7B"]],
    ["Ollama", ["Qwen 3 4B"]],
  ]);
});

test("a filter looks in names, quantisations, files and places, whatever the case", () => {
  expect(names("OLLAMA")).toEqual([["Ollama", ["Qwen 3 4B"]]]);
  expect(names("llama q4")).toEqual([
    ["LM Studio", ["Llama 3.2 3B"]],
    ["Ollama", ["Qwen 3 4B"]],
  ]);
  expect(names("smollm2 studio")).toEqual([["LM Studio", ["SmolLM2 1.7B"]]]);
  expect(names("gemma")).toEqual([]);
});
