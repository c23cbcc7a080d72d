import { describe, expect, it, vi } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Chats } from "./chats.svelte";
import { Dialogs } from "./dialogs.svelte";
import { Notices } from "./notices.svelte";
import { chat } from "./rows.fixture";
import { Transfers } from "./transfers.svelte";

type Started = {
  host: FakeHost;
  notices: Notices;
  chats: Chats;
  dialogs: Dialogs;
  transfers: Transfers;
  opened: number[];
  undone: number[];
};

function started(): Started {
  const host = new FakeHost();
  const undone: number[] = [];
  const notices = new Notices({ undo: () => undone.push(1) });
  const chats = new Chats(host, notices);
  const dialogs = new Dialogs(host, notices);
  const opened: number[] = [];
  const transfers = new Transfers(host, notices, chats, dialogs, (id) => opened.push(id));
  void host.subscribe((event) => {
    if (event.type === "transfer") transfers.receive(event.transfer);
  });
  return { host, notices, chats, dialogs, transfers, opened, undone };
}

describe("an export", () => {
  it("asks first, and says where the file is", async () => {
    const { host, notices, dialogs, transfers } = started();
    transfers.exportChats([3]);
    expect(transfers.exporting).toEqual({ chats: [3], name: null });
    transfers.format = "html";
    transfers.thinking = false;
    dialogs.settingsPage = "Chats and data";
    await transfers.export();
    host.endTransfer({ name: "running", done: 0 });
    expect(dialogs.settingsPage, "its progress is behind them").toBeNull();
    expect(host.calls).toContainEqual([
      "exportChats",
      { chats: [3], name: null, format: "html", thinking: false },
    ]);
    expect(transfers.exporting).toBeNull();
    expect(transfers.running).toEqual({ kind: "export", done: 0 });
    host.endTransfer({ name: "exported", file: "~/a.html", chats: 1, note: null });
    expect(transfers.running).toBeNull();
    const [notice] = notices.list;
    expect(notice?.text).toBe("Exported 1 chat to a.html");
    expect(notice?.action?.label).toBe("Show in folder");
    notice?.action?.run();
    expect(host.calls).toContainEqual(["showExported", "~/a.html"]);
  });

  it("names what cannot be imported again until that is dismissed", async () => {
    const { host, notices, transfers } = started();
    transfers.exportChats(null);
    await transfers.export();
    const note = "1 chat is too large to be imported again: “Birds”.";
    host.endTransfer({ name: "exported", file: "~/a.jsonl", chats: 2, note });
    const text = `Exported 2 chats to ~/a.jsonl. ${note}`;
    expect(notices.list[0]).toMatchObject({ text, stays: true });
  });

  it("goes on asking where no file was chosen, and exports nothing of nothing", async () => {
    const { host, transfers } = started();
    transfers.exportChats([]);
    expect(transfers.exporting).toBeNull();
    transfers.exportChats(null);
    host.closesDialogs = true;
    await transfers.export();
    expect(transfers.exporting).toEqual({ chats: null, name: null });
  });

  it.each([
    ["notes.md", "markdown", "notes"],
    ["~/Birds/My page.HTML", "html", "My page"],
    ["C:\\chats\\all.jsonl", "jsonl", "all"],
    ["v1.2", "html", "v1.2"],
    [".md", "markdown", null],
    ["", "html", null],
  ] as const)("takes name and format from %j", async (file, format, name) => {
    const { host, transfers } = started();
    transfers.format = "html";
    transfers.exportTo(3, file);
    expect(transfers.exporting).toEqual({ chats: [3], name });
    expect(transfers.format).toBe(format);
    await transfers.export();
    expect(host.calls).toContainEqual([
      "exportChats",
      { chats: [3], name, format, thinking: true },
    ]);
  });

  it("says what failed, until that is dismissed", async () => {
    const { host, notices, transfers } = started();
    transfers.exportChats(null);
    await transfers.export();
    host.endTransfer({ name: "failed", message: "The disk is full: a.md was not written." });
    expect(notices.list[0]).toMatchObject({ tone: "error", stays: true });
  });
});

describe("an import", () => {
  it("can be cancelled, and nothing is changed then", async () => {
    const { host, notices, transfers } = started();
    await transfers.import();
    expect(transfers.running).toEqual({ kind: "import", done: 0 });
    await transfers.cancel();
    expect(host.calls).toContainEqual(["cancelTransfer"]);
    expect(notices.list[0]?.text).toBe("The import was cancelled. Nothing was imported.");
  });

  it("can be undone", async () => {
    const { host, notices, transfers, undone } = started();
    await transfers.import();
    const message = "Imported 2 chats from Claude.";
    host.endTransfer({ name: "imported", message, added: true });
    expect(notices.list[0]?.text).toBe(message);
    notices.list[0]?.action?.run();
    expect(undone).toHaveLength(1);
  });

  it("leads to the first chat that it has brought", async () => {
    const { host, notices, chats, transfers, opened } = started();
    chats.take([chat(2, 40), chat(1, 10)]);
    await transfers.import();
    chats.put(chat(4, 30), chat(3, 20));
    host.endTransfer({ name: "imported", message: "Imported 2 chats.", added: true });
    notices.list[0]?.look?.run();
    expect(opened).toEqual([4]);
    await transfers.import();
    host.endTransfer({ name: "imported", message: "Imported a preset.", added: true });
    expect(notices.list.at(-1)?.look).toBeUndefined();
  });

  it("says that it is being cancelled until it has ended, or goes on", async () => {
    const { host, transfers } = started();
    await transfers.import();
    const cancel = vi.spyOn(host, "cancelTransfer");
    cancel.mockRejectedValueOnce({ code: "other", message: "No." });
    await transfers.cancel();
    expect(transfers.cancelling).toBe(false);
    cancel.mockResolvedValueOnce(null);
    await transfers.cancel();
    expect(transfers.cancelling).toBe(true);
    host.endTransfer({ name: "running", done: 0.5 });
    expect(transfers.cancelling).toBe(true);
    host.endTransfer({ name: "cancelled" });
    expect([transfers.running, transfers.cancelling]).toEqual([null, false]);
  });

  it("that left something out says so until that is dismissed", async () => {
    const { host, notices, transfers } = started();
    for (const added of [true, false]) {
      await transfers.import();
      const message = "Imported 2 chats. 1 chat could not be read and was left out: “Trees”.";
      host.endTransfer({ name: "imported", message, added });
      expect(notices.list.at(-1)).toMatchObject({ text: message, stays: true });
    }
  });

  it("that brought nothing is not undone", async () => {
    const { host, notices, transfers } = started();
    await transfers.import();
    host.endTransfer({ name: "imported", message: "There was nothing new.", added: false });
    expect(notices.list[0]?.action).toBeUndefined();
  });

  it("that is refused leaves alone what runs", async () => {
    const { host, notices, transfers } = started();
    transfers.exportChats(null);
    await transfers.export();
    host.emit({
      type: "transfer",
      transfer: { kind: "import", state: { name: "refused", message: "An export is running." } },
    });
    expect(notices.list[0]).toMatchObject({ tone: "error", text: "An export is running." });
    expect(transfers.running).toEqual({ kind: "export", done: 0 });
  });
});
