import { describe, expect, it } from "vitest";
import { contextHint, faultWords, fileName, size } from "./words";

it("says sizes in the unit that fits", () => {
  expect([0.2, 4.6, 120.4, 999, 1000, 1915].map((megabytes) => size(megabytes * 1e6))).toEqual([
    "0.2 MB",
    "4.6 MB",
    "120 MB",
    "999 MB",
    "1.0 GB",
    "1.9 GB",
  ]);
});

it("names a file by the last part of its path, on every system", () => {
  const paths = ["/models/a/b.gguf", "C:\\Models\\b.gguf", "b.gguf"];
  expect(paths.map(fileName)).toEqual(["b.gguf", "b.gguf", "b.gguf"]);
});

it("says which model answers while a file does not", () => {
  const bad = { code: "bad-model", message: "x.gguf is no model." } as const;
  const missing = { code: "missing-model", message: "x.gguf is gone." } as const;
  const demoModel = { demoModel: true, name: "Goldcrest demo model" };
  const other = { ...demoModel, demoModel: false, name: "SmolLM3" };
  expect(faultWords(bad, demoModel)).toBe(
    "x.gguf is no model. You are still using the demo model.",
  );
  expect(faultWords(bad, other)).toBe("x.gguf is no model. You are still using SmolLM3.");
  expect(faultWords(missing, demoModel)).toBe(
    "x.gguf is gone. You are using the demo model for now.",
  );
  expect(faultWords(missing, null)).toBe("x.gguf is gone.");
});

describe("the hint of the context setting", () => {
  it("says what the model runs with", () => {
    expect(contextHint({ contextLength: 65536, contextNote: null })).toBe(
      "How much of a chat the model can read at once, in tokens. More needs more memory. Now: 65,536.",
    );
  });

  it("says why that is not what was asked for", () => {
    const contextNote =
      "131,072 tokens were asked for, 40,960 are used: the free memory has room for no more.";
    const hint = contextHint({ contextLength: 40960, contextNote });
    expect(hint).toContain("Now: 40,960. 131,072 tokens were asked for, 40,960 are used: the free");
  });

  it("says nothing of a model that is not there yet", () => {
    const hint = contextHint(null);
    expect(hint).not.toContain("Now");
  });
});
