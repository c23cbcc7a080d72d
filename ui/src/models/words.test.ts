import { describe, expect, it } from "vitest";
import { contextHint } from "./words";

describe("the hint of the context setting", () => {
  it("says what the model runs with", () => {
    expect(contextHint({ state: "ready", contextLength: 65536, contextNote: null })).toBe(
      "How many tokens of a chat the model sees at once. More needs more memory. Now: 65,536.",
    );
  });

  it("says why that is not what was asked for", () => {
    const contextNote =
      "131072 tokens were asked for, 40960 are used: the free memory has room for no more.";
    const hint = contextHint({ state: "ready", contextLength: 40960, contextNote });
    expect(hint).toContain("Now: 40,960. 131072 tokens were asked for, 40960 are used: the free");
  });

  it("says nothing of a model that is not there yet", () => {
    const hint = contextHint({ state: "loading", contextLength: 0, contextNote: null });
    expect(hint).not.toContain("Now");
  });
});
