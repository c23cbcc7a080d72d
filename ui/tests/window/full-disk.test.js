import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { App, dataFolder } from "./app.js";
import { Display } from "./driver.js";

let display;
before(async () => (display = await Display.open()));
after(() => display.close());

/** Mounts a disk of a few megabytes, or returns undefined if that is not possible. */
function smallDisk(t) {
  const disk = mkdtempSync(join(tmpdir(), "goldcrest-disk-"));
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=24m", "goldcrest-test", disk]);
  t.after(() => {
    if (mounted.status === 0) spawnSync("umount", ["--lazy", disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  return mounted.status === 0 ? disk : undefined;
}

/** Fills a disk completely. */
function fill(path) {
  const file = openSync(path, "w");
  for (let size = 1 << 20; size > 0; size >>= 1)
    try {
      for (;;) if (writeSync(file, Buffer.alloc(size)) < size) break;
    } catch (error) {
      assert.equal(error.code, "ENOSPC");
    }
  closeSync(file);
}

test("a full disk is said, chats can be read, and what was typed is sent once there is room", async (t) => {
  const data = smallDisk(t);
  if (!data) return t.skip("no small disk can be mounted here: that takes root");
  const folder = dataFolder(t);
  const app = await App.open(t, display, {
    data,
    env: Object.fromEntries(
      ["DATA", "CONFIG", "CACHE"].map((name) => [`XDG_${name}_HOME`, join(folder, name)]),
    ),
  });
  await app.exact();
  const { text } = await app.ask("What is this app?");

  const filler = join(data, "filler");
  fill(filler);
  assert(statSync(filler).size > 1 << 20, "the disk was not full before");
  const message = await app.get("textbox", "Message");
  await app.session.type(message, "Do I need an account?");
  await app.click("button", "Send");
  await app.until("the full disk to be said", async () =>
    (await app.text()).includes("The disk is full. Your chats can be read"),
  );
  await app.picture("full-disk");
  const box = async () =>
    app.session.run("return arguments[0].value", await app.get("textbox", "Message"));
  await app.until("the message to be back in the box", async () => {
    return (await box()) === "Do I need an account?";
  });

  await app.click("button", "New chat");
  await app.get("textbox", "Message");
  await app.session.click((await app.session.all("[aria-label=Chats] li .open"))[0]);
  const start = text.trim().slice(0, 12);
  await app.until("the chat that was saved", async () =>
    (await app.conversation()).includes(start),
  );

  assert.equal(await box(), "Do I need an account?", "what was typed is still there");

  rmSync(filler);
  await app.until("the notice to go", async () => {
    return !(await app.text()).includes("The disk is full. Your chats");
  });
  await app.click("button", "Send");
  await app.until("the message to be sent", async () =>
    (await app.conversation()).includes("Do I need an account?"),
  );
  assert.equal((await app.answered()).state, "done");
});
