import { describe, expect, it } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Backups, inBackups } from "./backups.svelte";
import { Notices } from "./notices.svelte";

function started(): { host: FakeHost; backups: Backups; notes: string[] } {
  const host = new FakeHost();
  const notes: string[] = [];
  const backups = new Backups(host, new Notices(), (note) => notes.push(note));
  return { host, backups, notes };
}

describe("backups", () => {
  it("are listed, and one can be made", async () => {
    const { backups } = started();
    expect(backups.copies).toBeNull();
    await backups.load();
    const before = backups.copies?.length ?? 0;
    const made = backups.backUp();
    expect(backups.busy).toBe("Backing up…");
    await made;
    expect(backups.busy).toBe("");
    expect(backups.copies).toHaveLength(before + 1);
  });

  it("are restored, and the page begins again", async () => {
    const { host, backups, notes } = started();
    await backups.load();
    const copy = backups.copies?.[0];
    if (!copy) throw new Error("no copy");
    await backups.restore(copy);
    expect(host.calls).toContainEqual(["restoreBackup", copy.name]);
    expect(notes).toHaveLength(1);
    expect(notes[0]).toContain("kept as goldcrest-set-aside-2026-11-24.db");
  });

  it("are deleted once that was confirmed", async () => {
    const { host, backups } = started();
    await backups.load();
    const [first, ...rest] = backups.copies ?? [];
    if (!first) throw new Error("no copy");
    backups.asked = { copy: first.name, to: "delete" };
    await backups.remove(first);
    expect(host.calls).toContainEqual(["removeBackup", first.name]);
    expect(backups.copies).toEqual(rest);
    expect(backups.asked).toBeNull();
    expect(inBackups(1)).toContain("still contain it until newer ones replace them");
    expect(inBackups(2)).toContain("still contain them until");
  });

  it("say why something did not work, and the page goes on", async () => {
    const { host, backups, notes } = started();
    await backups.load();
    const copy = backups.copies?.[0];
    if (!copy) throw new Error("no copy");
    host.full = true;
    await backups.restore(copy);
    expect(backups.error).toContain("The disk is full");
    expect(notes).toEqual([]);
    await backups.backUp();
    expect(backups.error).toContain("The disk is full");
  });
});
