import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ModelEntry } from "../host/host";
import type { FakeHost } from "../host/fake/fake";
import { downloads } from "../host/fake/downloads";
import { big, bundledModel, loading, ready } from "../host/fake/library";
import { bundledEntry, onDisk, q4, q8, refuse } from "../host/fake/models";
import type { App } from "./app.svelte";
import { start } from "./started.fixture";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

type Started = { app: App; host: FakeHost };

/** Starts an app with the bundled model open, and these models in the list. */
const withModels = (...entries: ModelEntry[]): Promise<Started> =>
  start({ model: ready(bundledModel), models: { entries: [...entries, bundledEntry] } });

const offered = ({ models }: App): [way?: string, id?: string] =>
  models.offer ? [models.offer.way, models.offer.entry.id] : [];

const notices = (app: App): string[] => app.notices.list.map(({ text }) => text);

const file = onDisk(q4, "/m/SmolLM3-Q4_K_M.gguf", "lm-studio");
const unfit = q4.forecast && ({ ...q4.forecast, fit: "does-not-fit" } as const);

test("a new user is offered the recommended model, or a file that is there", async () => {
  expect(offered((await withModels(q8, q4)).app)).toEqual(["get", q4.id]);
  expect(offered((await withModels(file, q8)).app)).toEqual(["open", file.id]);
  const fast = { ...q8, forecast: q4.forecast };
  expect(offered((await withModels(q4, onDisk(fast, "/m/q8.gguf", "jan"))).app)).toEqual([
    "open",
    "/m/q8.gguf",
  ]);
  expect(offered((await withModels()).app)).toEqual([]);
});

test("a slow file, and one of somebody else's making, are offered beside the download", async () => {
  const beside = async (...entries: ModelEntry[]): Promise<(string | undefined)[]> => {
    const { offer } = (await withModels(...entries)).app.models;
    return [offer?.way, offer?.entry.id, offer?.found?.id];
  };
  const slow = onDisk(q8, "/m/q8.gguf", "jan");
  expect(slow.forecast?.fit).toBe("slow");
  expect(await beside(q4, slow)).toEqual(["get", q4.id, slow.id]);
  const tuned = { ...onDisk(q4, "/m/tuned.gguf", "lm-studio"), recommended: false };
  const unlisted = { ...tuned, authenticity: "unlisted" } as const;
  expect(await beside(q4, unlisted)).toEqual(["get", q4.id, unlisted.id]);
  // Without a download, the offer is to open the file.
  expect(await beside(slow)).toEqual(["open", slow.id, undefined]);
  expect(await beside(unlisted)).toEqual(["open", unlisted.id, undefined]);
  expect(await beside(file, unlisted, slow)).toEqual(["open", file.id, undefined]);
});

test("a file that cannot be opened or does not fit is not offered before one that can", async () => {
  const broken = { ...file, problem: "The file ends early." };
  expect(offered((await withModels(broken, q4)).app)).toEqual(["get", q4.id]);
  const large = { ...onDisk(q8, "/m/q8.gguf", "jan"), forecast: unfit };
  expect(offered((await withModels(large, q4)).app)).toEqual(["get", q4.id]);
  expect(offered((await withModels(large)).app)).toEqual(["open", large.id]);
  const official = onDisk(q8, "/m/official.gguf", "downloads");
  const other = { ...onDisk(q8, "/m/other.gguf", "downloads"), authenticity: "unlisted" } as const;
  expect(offered((await withModels(other, official)).app)).toEqual(["open", official.id]);
});

test("a file that is damaged is not offered", async () => {
  const note = "It has the size of the official file, but not its content.";
  const damaged = { ...file, authenticity: "unlisted", recommended: false, note } as const;
  expect(offered((await withModels(damaged, q4)).app)).toEqual(["get", q4.id]);
  expect(offered((await withModels(damaged)).app)).toEqual([]);
});

test("a file that is being verified is shown with the download until that is done", async () => {
  const verifying = { ...file, authenticity: "unchecked", verifiedBytes: 0 } as const;
  const { app, host } = await withModels(q4, verifying);
  expect(offered(app)).toEqual(["get", q4.id]);
  expect(app.models.offer?.found?.id).toBe(file.id);
  host.setList({ entries: [q4, { ...verifying, verifiedBytes: null }, bundledEntry] });
  expect(offered(app)).toEqual(["get", q4.id]);
  expect(app.models.offer?.found).toBeNull();
  host.setList({ entries: [file, bundledEntry] });
  expect(offered(app)).toEqual(["open", file.id]);
});

test("a download that has begun stays the offer, whatever is found meanwhile", async () => {
  const { app, host } = await withModels(q4, q8);
  await app.models.get(q4);
  host.setList({ entries: [...host.list.entries, onDisk(q8, "/m/q8.gguf", "jan")] });
  expect(offered(app)).toEqual(["get", q4.id]);
  const coming = app.models.downloading;
  expect([coming?.id, coming?.download?.state]).toEqual([q4.id, "running"]);
});

test("a download runs, pauses, goes on where it was, and the chat goes on with its model", async () => {
  const { app, host } = await withModels(q4);
  await app.models.get(q4);
  await vi.advanceTimersByTimeAsync(2600);
  const { downloading } = app.models;
  await app.models.pause(q4);
  expect(app.models.downloading?.download).toMatchObject({
    state: "paused",
    done: downloading?.download?.done,
  });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(app.models.downloading?.download?.done).toBe(downloading?.download?.done);
  await app.models.get(q4);
  await vi.advanceTimersByTimeAsync(8000);
  expect(app.models.downloading?.download?.state).toBe("verifying");
  await vi.advanceTimersByTimeAsync(500);
  expect(app.models.downloading).toBeNull();
  expect(notices(app)).toEqual(["SmolLM3-3B is downloaded and verified. Opening it now."]);
  await vi.advanceTimersByTimeAsync(3000);
  expect(notices(app)).toContain("You are now talking to SmolLM3-3B.");
  const here = app.models.here.find(({ recommended }) => recommended);
  expect(here && app.models.isCurrent(here)).toBe(true);
  expect(host.calls.map(([name]) => name)).toEqual(["getModel", "pauseDownload", "getModel"]);
});

test("with another model open, a file that came in waits to be opened", async () => {
  const { app, host } = await start();
  await app.models.get(q8);
  await vi.advanceTimersByTimeAsync(12_000);
  const [notice] = app.notices.list;
  expect(notice?.action?.label).toBe("Open");
  notice?.action?.run();
  await vi.advanceTimersByTimeAsync(0);
  expect(host.calls.at(-1)?.[0]).toBe("openModel");
});

test("a model that came in and does not open is not said to be in use", async () => {
  const { app, host } = await withModels(q4);
  app.models.show();
  const path = "/m/new.gguf";
  const came = (): void => {
    host.emit({ type: "model", model: loading({ ...big, file: path }, 0) });
    host.emit({ type: "downloaded", id: q4.id, file: path, opens: true });
  };
  came();
  expect(app.models.outcome?.text).toContain("Opening it now.");
  const error = { code: "other", message: "It needs 2.5 GB of memory." } as const;
  host.emit({ type: "model", model: { ...ready(bundledModel), error } });
  expect(app.models.outcome).toEqual({ text: error.message, tone: "error" });
  host.emit({ type: "model", model: ready({ ...big, file: path }) });
  expect(app.models.outcome?.tone).toBe("error");
  // The chat shows it in a banner.
  app.models.close();
  came();
  host.emit({ type: "model", model: { ...ready(bundledModel), error } });
  expect(app.model.fault?.message).toBe(error.message);
  host.emit({ type: "model", model: ready({ ...big, file: path }) });
  expect(notices(app)).toEqual(["SmolLM3-3B is downloaded and verified. Opening it now."]);
});

test("the models page itself says that a file came in", async () => {
  const { app } = await withModels(q4);
  app.models.show();
  await app.models.get(q4);
  await vi.advanceTimersByTimeAsync(11_000);
  expect(app.models.outcome?.text).toContain("SmolLM3-3B is downloaded and verified.");
  await vi.advanceTimersByTimeAsync(3000);
  expect(app.models.outcome?.text).toBe("You are now talking to SmolLM3-3B.");
  expect(notices(app)).toEqual([]);
});

test("a download is spoken of at its quarters, not at each step", async () => {
  const { app } = await withModels(q4);
  await app.models.get(q4);
  const heard = new Set<string>();
  for (let step = 0; step < 45; step++) {
    await vi.advanceTimersByTimeAsync(250);
    heard.add(app.models.spoken);
  }
  expect([...heard]).toEqual([
    "Downloading SmolLM3-3B.",
    "SmolLM3-3B: 25 % downloaded, a few seconds left.",
    "SmolLM3-3B: 50 % downloaded, a few seconds left.",
    "SmolLM3-3B: 75 % downloaded, a few seconds left.",
    "SmolLM3-3B is downloaded. Checking the file.",
  ]);
});

test("the state of a download is there again after the page was loaded again", async () => {
  const { app } = await start(downloads["download-paused"]);
  expect(app.models.downloading?.download).toMatchObject({ state: "paused", done: 412_300_000 });
});

test("a list that was asked for before an event came does not undo the event", async () => {
  const { app, host } = await withModels(q4);
  const listModels = host.listModels.bind(host);
  host.listModels = async () => {
    const asked = await listModels();
    host.setList({ scanning: true });
    return asked;
  };
  await app.models.refresh();
  expect(app.models.list?.scanning).toBe(true);
});

test("what is refused is said on the page while it is shown, else as a notice", async () => {
  const { app, host } = await start();
  const current = app.models.here.find((entry) => app.models.isCurrent(entry));
  expect(current?.file).toBe("~/Models/SmolLM3-Q4_K_M.gguf");
  app.models.show();
  await app.models.remove(current ?? q4);
  expect(app.models.outcome).toMatchObject({ tone: "error" });
  expect(app.models.outcome?.text).toContain("This model is in use.");
  expect(notices(app)).toEqual([]);
  host.ejectModel = () => refuse("other", "An answer is being written. Stop it first.");
  await app.models.eject();
  expect(app.models.outcome?.text).toBe("An answer is being written. Stop it first.");
  app.models.close();
  await app.models.open({ ...file, id: "/gone.gguf" });
  expect(notices(app)).toEqual(["This file is not there any more."]);
  host.setList({ entries: [file, bundledEntry] });
  app.models.show();
  expect(app.models.outcome).toBeNull();
  await app.models.remove(file);
  expect(app.models.outcome).toEqual({
    text: "SmolLM3-3B, Q4_K_M is in the trash.",
    tone: "plain",
  });
  expect(app.models.here).toHaveLength(1);
  await app.models.remove({ ...file, quantisation: "" });
  expect(app.models.outcome?.text).toBe("SmolLM3-3B is in the trash.");
});

test("a bad address comes back with its reason, a good one as a download", async () => {
  const { app } = await start();
  expect(await app.models.getAddress("http://example.org/a.gguf")).toContain("https://");
  expect(await app.models.getAddress("https://example.org/a.zip")).toContain(".gguf");
  expect(await app.models.getAddress("https://example.org/a.gguf")).toContain("Hugging Face");
  const address = "https://huggingface.co/me/it/resolve/main/a%20b.gguf";
  expect(await app.models.getAddress(address)).toBeNull();
  expect(app.models.downloading?.address).toBe(address);
});

test("a name cannot turn the text around it", async () => {
  const { app } = await withModels({ ...q4, name: "Smol\u202EfdpLM3" });
  expect(app.models.toDownload[0]?.name).toBe("SmolfdpLM3");
});

test("an unloaded model is loaded by what is typed", async () => {
  const { app, host } = await start();
  await app.models.eject();
  expect([app.model.ejected, app.model.open, app.model.known?.name]).toEqual([
    true,
    null,
    "SmolLM3-Q4_K_M",
  ]);
  app.composer.write("Hello");
  app.flush();
  await vi.advanceTimersByTimeAsync(2000);
  expect([app.model.ejected, app.model.status.state]).toEqual([false, "ready"]);
  await app.models.eject();
  await app.models.reload();
  await vi.advanceTimersByTimeAsync(2000);
  expect(app.model.status.state).toBe("ready");
  expect(host.calls.filter(([name]) => /eject|reload/u.test(name))).toHaveLength(3);
});

test("new chats lead to a real model only while the bundled model, or none, is open", async () => {
  expect((await start()).app.offersModel).toBe(false);
  const { app, host } = await withModels(q4);
  expect(app.offersModel).toBe(true);
  await app.navigation.open(app.chats.list[0]?.id ?? 0);
  expect(app.offersModel).toBe(false);
  app.navigation.newChat();
  expect(app.offersModel).toBe(true);
  host.emit({ type: "model", model: loading({ ...bundledModel, bundledModel: false }, 0.5) });
  expect(app.offersModel).toBe(false);
});
