import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { hostCases } from "../suite";
import { HostStage } from "../suite-stage";
import { FakeHost } from "./fake";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

describe("the scripted host does what every host does", () => {
  test.each(hostCases)("$name", async ({ run }) => {
    const host = new FakeHost({ filled: false, readingMs: 100, rate: 60 });
    const stage = await HostStage.open(host, {
      short: { text: "What is Goldcrest?", settings: {} },
      endless: { text: "A long answer of 20000 tokens", settings: {} },
    });
    let ended = false;
    const running = run(stage).finally(() => (ended = true));
    running.catch(() => undefined);
    while (!ended) await vi.advanceTimersByTimeAsync(20);
    await running;
    expect(ended).toBe(true);
  });
});
