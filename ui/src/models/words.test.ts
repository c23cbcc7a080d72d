import { describe, expect, it } from "vitest";
import { onDisk, q4 } from "../state/models.fixture";
import {
  authenticityWords,
  automaticWords,
  contextHint,
  contextWords,
  faultWords,
  fileName,
  memoryWords,
  parameterWords,
  placeWords,
  precisionHint,
  samplingWords,
  serverOf,
  hereWords,
  speedWords,
  suitWords,
  warningWords,
} from "./words";

/** A context length that only fits in 8 bits. */
const long = {
  tokens: 131072,
  kvF16Bytes: 9.66e9,
  kvQ8Bytes: 5.13e9,
  stretched: true,
  fitsF16: false,
  fitsQ8: true,
};

it("names a file by the last part of its path, on every system", () => {
  const paths = ["/models/a/b.gguf", "C:\\Models\\b.gguf", "b.gguf"];
  expect(paths.map(fileName)).toEqual(["b.gguf", "b.gguf", "b.gguf"]);
});

it("names a sampling value of the model, twice where thinking matters", () => {
  const plain = {
    temperature: 0.7,
    topP: 0.8,
    topK: 20,
    minP: 0,
    repeatPenalty: 1,
    repeatLastN: 64,
    seed: null,
  };
  const sampling = { withThinking: { ...plain, temperature: 0.6 }, withoutThinking: plain };
  const thinks = { canThink: true, sampling };
  expect(samplingWords(thinks, "temperature")).toBe("0.6, without thinking 0.7");
  expect(samplingWords(thinks, "topK")).toBe("20");
  expect(samplingWords({ ...thinks, canThink: false }, "temperature")).toBe("0.7");
  expect(samplingWords(null, "temperature")).toBeNull();
});

it("says which model answers while a file does not", () => {
  const bad = { code: "bad-model", message: "x.gguf is no model." } as const;
  const missing = { code: "missing-model", message: "x.gguf is gone." } as const;
  const other = { name: "SmolLM3" };
  expect(faultWords(bad, other)).toBe("x.gguf is no model. You are still using SmolLM3.");
  expect(faultWords(bad, other)).toBe("x.gguf is no model. You are still using SmolLM3.");
  expect(faultWords(missing, other)).toBe("x.gguf is gone. You are using SmolLM3 for now.");
  expect(faultWords(missing, null)).toBe("x.gguf is gone.");
});

describe("the hint of the context setting", () => {
  it("says what the model runs with", () => {
    expect(contextHint({ contextLength: 65536, contextNote: null })).toBe(
      "How much of a chat the model can read at once, in tokens. More needs more memory. Now: 65,536.",
    );
  });

  it("says why that is not the requested length", () => {
    const contextNote =
      "131,072 tokens were requested, but 40,960 are used: more do not fit in the free memory.";
    const hint = contextHint({ contextLength: 40960, contextNote });
    expect(hint).toContain("Now: 40,960. 131,072 tokens were requested, but 40,960 are used: more");
  });

  it("says nothing of a model that is not there yet", () => {
    const hint = contextHint(null);
    expect(hint).not.toContain("Now");
  });
});

describe("what is said of a model before it is here", () => {
  const forecast = {
    contextLength: 16384,
    memoryBytes: 3.31e9,
    fit: "fits",
    tokensPerSecond: 9.24,
    measured: false,
  } as const;

  it("does not make an estimate look exact", () => {
    expect(speedWords(forecast)).toBe("about 9 tokens/s (estimated)");
    expect(speedWords({ ...forecast, measured: true })).toBe("9.2 tokens/s (measured)");
    expect(speedWords({ ...forecast, tokensPerSecond: 0.64 })).toBe(
      "about 0.6 tokens/s (estimated)",
    );
    expect(speedWords({ ...forecast, tokensPerSecond: null })).toBeNull();
    expect(memoryWords(forecast)).toBe("3.3 GB of memory at 16,384 tokens");
  });

  it("says whether it suits this computer, and what speaks against it", () => {
    expect(suitWords(q4)).toBe("Fits this computer: about 9 tokens/s (estimated).");
    expect(suitWords({ ...q4, forecast: { ...forecast, fit: "slow", tokensPerSecond: 1 } })).toBe(
      "Slow on this computer: about 1.0 tokens/s (estimated).",
    );
    expect(suitWords({ ...q4, forecast: null })).toBeNull();
    expect(hereWords(q4)).toBe("about 9 tokens/s here");
    const slow = { ...forecast, fit: "slow" as const, tokensPerSecond: 1, measured: true };
    expect(hereWords({ forecast: slow })).toBe("slow here: 1.0 tokens/s");
    expect(hereWords({ forecast: { ...slow, tokensPerSecond: null } })).toBe("slow here");
    expect(hereWords({ forecast: null })).toBeNull();
    expect(warningWords(q4, null)).toBeNull();
    expect(warningWords(q4, 1.2e9)).toContain("needs 1.9 GB on the disk, and 1.2 GB are free");
    const begun = { state: "paused", done: 1.5e9, total: q4.bytes } as const;
    expect(warningWords({ ...q4, download: begun }, 1.2e9)).toBeNull();
    const verifying = { state: "verifying", done: 0, total: q4.bytes } as const;
    expect(warningWords({ ...q4, download: verifying }, 0)).toBeNull();
    const unfit = { ...q4, forecast: { ...forecast, fit: "does-not-fit" } } as const;
    expect(warningWords(unfit, null)).toContain("needs 3.3 GB of memory");
    expect(suitWords(unfit)).toBeNull();
  });

  it("says of a file where it is, and whether it is the official one", () => {
    const file = onDisk(q4, "C:\\Models\\mine\\a.gguf", "opened");
    expect(placeWords(file)).toBe("mine");
    expect(placeWords(onDisk(q4, "/x/a.gguf", "lm-studio"))).toBe("LM Studio");
    expect(placeWords(q4)).toBeNull();
    expect(authenticityWords(file)).toBe("Official file");
    expect(authenticityWords({ ...file, authenticity: "unchecked" })).toBe("Not verified yet");
    const verifying = { ...file, authenticity: "unchecked", verifiedBytes: q4.bytes / 2 } as const;
    expect(authenticityWords(verifying)).toBe("Checking the file: 50 %");
    expect(authenticityWords({ ...file, authenticity: "unlisted" })).toBeNull();
    expect(authenticityWords({ ...q4, authenticity: "unlisted" })).toBeNull();
    expect(serverOf(q4)).toBe("huggingface.co");
    expect([null, "no address"].map((address) => serverOf({ ...q4, address }))).toEqual([
      null,
      null,
    ]);
  });

  it("has the number of weights as people say it", () => {
    expect([134_515_008, 999_400_000, 1_711_376_384, 14_770_000_000].map(parameterWords)).toEqual([
      "135M parameters",
      "999M parameters",
      "1.7B parameters",
      "15B parameters",
    ]);
  });

  it("has the memory of a context length, and what speaks against it", () => {
    expect(contextWords({ ...long, stretched: false }, "q8_0")).toBe(
      "131,072 tokens · 9.7 GB (5.1 GB in 8-bit)",
    );
    expect(contextWords(long, "f16")).toBe(
      "131,072 tokens · 9.7 GB (5.1 GB in 8-bit) · longer than trained · does not fit",
    );
  });

  it("has the memory of the automatic context, and of each precision", () => {
    const short = { ...long, tokens: 8192, kvF16Bytes: 6.04e8, kvQ8Bytes: 3.21e8 };
    const f16 = { ...short, stretched: false, fitsF16: true };
    const options = { lengths: [f16, long], automaticF16: f16, automaticQ8: long };
    expect(automaticWords(null, "f16")).toBe("Automatic");
    expect(automaticWords(options, "f16")).toBe(
      "Automatic · 8,192 tokens · 604 MB (321 MB in 8-bit)",
    );
    expect(automaticWords(options, "q8_0")).toContain("131,072 tokens");
    const precision = (length: number | null): string =>
      precisionHint(options, length).split(". ").at(-1) ?? "";
    expect(precision(null)).toBe(
      "16-bit takes 604 MB for 8,192 tokens, 8-bit 5.1 GB for 131,072 tokens.",
    );
    expect(precision(8192)).toBe(
      "16-bit takes 604 MB for 8,192 tokens, 8-bit 321 MB for 8,192 tokens.",
    );
    expect(precisionHint(null, null)).toBe(
      "8-bit uses half the memory and is slightly less precise.",
    );
  });
});
