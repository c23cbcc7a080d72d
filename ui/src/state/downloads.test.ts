import { describe, expect, it } from "vitest";
import type { DownloadState } from "../host/host";
import { percentOf, progressWords, share, shortWords, spokenWords } from "./downloads";

const running = (done: number, total: number | null = 1000e6): DownloadState => ({
  state: "running",
  done,
  total,
  bytesPerSecond: 8.2e6,
  secondsLeft: 180,
});

describe("how far a download is", () => {
  it("has amount, speed and time left, as far as they are known", () => {
    expect(progressWords(running(412e6))).toBe("412 MB of 1.0 GB · 8.2 MB/s · 3 min left");
    const unknown = { state: "running", bytesPerSecond: null, secondsLeft: null } as const;
    expect(progressWords({ ...unknown, done: 412e6, total: null })).toBe("412 MB");
  });

  it("says why nothing comes in", () => {
    const at = { done: 412e6, total: 1000e6 };
    expect(progressWords({ state: "paused", ...at })).toBe("Paused at 412 MB of 1.0 GB");
    expect(progressWords({ state: "failed", ...at, message: "" })).toBe(
      "Download failed at 412 MB of 1.0 GB",
    );
    const waiting = {
      state: "waiting",
      ...at,
      message: "The server is busy.",
      seconds: 30,
    } as const;
    expect(progressWords(waiting)).toBe("412 MB of 1.0 GB · trying again within 30 s");
    expect(progressWords({ state: "verifying", ...at })).toBe(
      "Downloaded. Checking the file: 41 %",
    );
  });

  it("is not said to be whole before it is", () => {
    expect(percentOf(0.9999)).toBe("99 %");
    expect(share(running(5, 0))).toBeNull();
    expect(shortWords(running(5e6, null))).toBe("5.0 MB");
    expect(shortWords(running(999e6))).toBe("99 %");
  });
});

describe("what is read aloud of a download", () => {
  it("is each quarter once", () => {
    expect(spokenWords("A", null, running(0))).toBe("Downloading A.");
    expect(spokenWords("A", running(0), running(249e6))).toBeNull();
    expect(spokenWords("A", running(249e6), running(250e6))).toBe(
      "A: 25 % downloaded, 3 min left.",
    );
    expect(spokenWords("A", running(250e6), running(251e6))).toBeNull();
  });

  it("is each change of its state, and none twice", () => {
    const paused = { state: "paused", done: 600e6, total: 1000e6 } as const;
    expect(spokenWords("A", running(600e6), paused)).toBe("Download of A paused.");
    expect(spokenWords("A", paused, paused)).toBeNull();
    expect(spokenWords("A", paused, running(600e6))).toBe("Downloading A.");
    const message = "The server is busy.";
    const waiting = { ...paused, state: "waiting", message, seconds: 30 } as const;
    expect(spokenWords("A", running(600e6), waiting)).toBe(
      "The server is busy. Goldcrest tries to download A again.",
    );
    const failed = { ...paused, state: "failed", message: "The disk is full." } as const;
    expect(spokenWords("A", running(600e6), failed)).toBe(
      "Download of A failed. The disk is full.",
    );
    const verifying = { ...paused, state: "verifying" } as const;
    expect(spokenWords("A", running(1000e6), verifying)).toBe(
      "A is downloaded. Checking the file.",
    );
    expect(spokenWords("A", verifying, verifying)).toBeNull();
  });
});
