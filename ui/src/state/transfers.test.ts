import { describe, expect, it } from "vitest";
import { FakeHost } from "../host/fake/fake";
import type { Imported } from "../host/host";
import { Notices } from "./notices.svelte";
import { importWords, Transfers } from "./transfers.svelte";

function started(): { host: FakeHost; notices: Notices; transfers: Transfers; undone: number[] } {
  const host = new FakeHost();
  const notices = new Notices();
  const undone: number[] = [];
  notices.undo = () => undone.push(1);
  const transfers = new Transfers(host, notices);
  void host.subscribe((event) => {
    if (event.type === "transfer") transfers.receive(event.transfer);
  });
  return { host, notices, transfers, undone };
}

const nothing: Imported = { added: 0, changed: 0, known: 0, empty: 0, cut: 0, sources: [] };

describe("an export", () => {
  it("asks first, and says where the file is", async () => {
    const { host, notices, transfers } = started();
    transfers.exportChats([3]);
    expect(transfers.exporting).toEqual({ chats: [3] });
    transfers.format = "html";
    transfers.thinking = false;
    let begun = 0;
    transfers.onbegin = () => begun++;
    await transfers.export();
    host.endTransfer({ name: "running", done: 0 });
    expect(begun).toBe(1);
    expect(host.calls).toContainEqual([
      "exportChats",
      { chats: [3], format: "html", thinking: false },
    ]);
    expect(transfers.exporting).toBeNull();
    expect(transfers.running).toEqual({ kind: "export", done: 0 });
    host.endTransfer({ name: "exported", file: "~/a.html", chats: 1 });
    expect(transfers.running).toBeNull();
    expect(notices.list[0]?.text).toBe("Exported 1 chat to ~/a.html");
  });

  it("goes on asking where no file was chosen, and exports nothing of nothing", async () => {
    const { host, transfers } = started();
    transfers.exportChats([]);
    expect(transfers.exporting).toBeNull();
    transfers.exportChats(null);
    host.closesDialogs = true;
    await transfers.export();
    expect(transfers.exporting).toEqual({ chats: null });
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
    transfers.cancel();
    await Promise.resolve();
    expect(host.calls).toContainEqual(["cancelTransfer"]);
    expect(notices.list[0]?.text).toBe("The import was cancelled. Nothing was imported.");
  });

  it("can be undone", async () => {
    const { host, notices, transfers, undone } = started();
    await transfers.import();
    host.endTransfer({ name: "imported", ...nothing, added: 2, sources: ["claude"] });
    expect(notices.list[0]?.text).toBe("Imported 2 chats from Claude.");
    notices.list[0]?.action?.run();
    expect(undone).toHaveLength(1);
  });

  it("says what became of the chats", () => {
    expect(importWords({ ...nothing, known: 2, sources: ["goldcrest"] })).toBe(
      "There was nothing new to import. 2 chats were here already.",
    );
    const all: Imported = {
      added: 1204,
      changed: 1,
      known: 1,
      empty: 2,
      cut: 1,
      sources: ["chat-gpt"],
    };
    expect(importWords(all)).toBe(
      "Imported 1,204 chats from ChatGPT. 1 chat was here already. One had gone on since, and stands beside the " +
        "earlier one. 2 chats without messages were left out. One text was too long, and cut.",
    );
  });
});
