import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Highlighter, type Job, type Outcome, type Reply } from "./highlighter";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

/** A highlighter with workers controlled by the test. */
function stage(): {
  highlighter: Highlighter;
  workers: { jobs: Job[]; ended: boolean; onReply: (reply: Reply | "failed") => void }[];
  run: (code: string, signal?: AbortSignal) => { outcome: Outcome | null; pieces: number[] };
} {
  const workers: ReturnType<typeof stage>["workers"] = [];
  const highlighter = new Highlighter((onReply) => {
    const worker = { jobs: [] as Job[], ended: false, onReply };
    workers.push(worker);
    return { post: (job) => worker.jobs.push(job), end: () => (worker.ended = true) };
  });
  const run = (code: string, signal?: AbortSignal): ReturnType<ReturnType<typeof stage>["run"]> => {
    const seen: { outcome: Outcome | null; pieces: number[] } = { outcome: null, pieces: [] };
    const job = { code, language: "js", lengths: [code.length] };
    void highlighter
      .run(job, (index) => seen.pieces.push(index), signal)
      .then((outcome) => (seen.outcome = outcome));
    return seen;
  };
  return { highlighter, workers, run };
}

const soon = (): Promise<unknown> => vi.advanceTimersByTimeAsync(1);

test("one job after the other, in one worker that is started when it is needed", async () => {
  const { workers, run } = stage();
  expect(workers).toHaveLength(0);
  const [a, b] = [run("a"), run("b")];
  expect(workers[0]?.jobs).toEqual([]);
  workers[0]?.onReply("ready");
  expect(workers[0]?.jobs.map(({ code }) => code)).toEqual(["a"]);
  workers[0]?.onReply({ index: 0, runs: [] });
  workers[0]?.onReply("done");
  await soon();
  expect(a).toEqual({ outcome: "done", pieces: [0] });
  expect(workers[0]?.jobs.map(({ code }) => code)).toEqual(["a", "b"]);
  workers[0]?.onReply("done");
  await soon();
  expect(b.outcome).toBe("done");
  expect(workers).toHaveLength(1);
});

test("a job that takes too long ends with its worker, and the next one gets a new worker", async () => {
  const { workers, run } = stage();
  const [slow, next] = [run("slow"), run("next")];
  workers[0]?.onReply("ready");
  await vi.advanceTimersByTimeAsync(499);
  expect(slow.outcome).toBeNull();
  await vi.advanceTimersByTimeAsync(2);
  expect(slow.outcome).toBe("late");
  expect(workers[0]?.ended).toBe(true);
  workers[0]?.onReply({ index: 0, runs: [] });
  workers[0]?.onReply("done");
  workers[1]?.onReply("ready");
  expect(workers[1]?.jobs.map(({ code }) => code)).toEqual(["next"]);
  expect(next).toEqual({ outcome: null, pieces: [] });
  workers[1]?.onReply("done");
  await soon();
  expect(next.outcome).toBe("done");
});

test("the time to start a worker is no job's time", async () => {
  const { workers, run } = stage();
  const job = run("a");
  await vi.advanceTimersByTimeAsync(3_000);
  expect(job.outcome).toBeNull();
  workers[0]?.onReply("ready");
  workers[0]?.onReply("done");
  await soon();
  expect(job.outcome).toBe("done");
});

test("where no worker starts, every job ends at once and none is tried again", async () => {
  const { workers, run } = stage();
  const first = run("a");
  await vi.advanceTimersByTimeAsync(60_000);
  expect(first.outcome).toBe("failed");
  const second = run("b");
  await soon();
  expect(second.outcome).toBe("failed");
  expect(workers).toHaveLength(1);

  const refusing = new Highlighter(() => {
    throw new TypeError("refused by the policy");
  });
  expect(await refusing.run({ code: "a", language: "js", lengths: [1] }, () => undefined)).toBe(
    "failed",
  );
});

test("a worker that fails in a job takes only that job along", async () => {
  const { workers, run } = stage();
  const [a, b] = [run("a"), run("b")];
  workers[0]?.onReply("ready");
  workers[0]?.onReply("failed");
  workers[1]?.onReply("ready");
  workers[1]?.onReply("done");
  await soon();
  expect([a.outcome, b.outcome]).toEqual(["failed", "done"]);
});

test("what nobody waits for any more is not begun", async () => {
  const { workers, run } = stage();
  const leaving = new AbortController();
  const [, left, c] = [run("a"), run("b", leaving.signal), run("c")];
  workers[0]?.onReply("ready");
  leaving.abort();
  workers[0]?.onReply("done");
  await soon();
  expect(workers[0]?.jobs.map(({ code }) => code)).toEqual(["a", "c"]);
  expect(left.outcome).toBe("failed");
  workers[0]?.onReply("done");
  await soon();
  expect(c.outcome).toBe("done");
});
