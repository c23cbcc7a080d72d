import { describe, expect, it } from "vitest";
import { FakeHost } from "../host/fake/fake";
import { Backups } from "./backups.svelte";
import { Notices } from "./notices.svelte";

function started(): { host: FakeHost; backups: Backups; reloads: () => number } {
  const host = new FakeHost();
  let reloads = 0;
  const backups = new Backups(host, new Notices(), () => reloads++);
  return { host, backups, reloads: () => reloads };
}

describe("backups", () => {
  it("are listed with the folder, and one can be made", async () => {
    const { backups } = started();
    expect(backups.copies).toBeNull();
    await backups.load();
    expect(backups.folder?.path).toBe("~/.local/share/goldcrest");
    const before = backups.copies?.length ?? 0;
    const made = backups.backUp();
    expect(backups.busy).toBe("Backing up…");
    await made;
    expect(backups.busy).toBe("");
    expect(backups.copies).toHaveLength(before + 1);
  });

  it("are restored, and the page begins again", async () => {
    const { host, backups, reloads } = started();
    await backups.load();
    const copy = backups.copies?.[0];
    if (!copy) throw new Error("no copy");
    await backups.restore(copy);
    expect(host.calls).toContainEqual(["restoreBackup", copy.name]);
    expect(reloads()).toBe(1);
  });

  it("say why something did not work, and the page goes on", async () => {
    const { host, backups, reloads } = started();
    await backups.load();
    const copy = backups.copies?.[0];
    if (!copy) throw new Error("no copy");
    host.full = true;
    await backups.restore(copy);
    expect(backups.error).toContain("The disk is full");
    expect(reloads()).toBe(0);
    await backups.backUp();
    expect(backups.error).toContain("The disk is full");
  });
});
