import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Stand, resume } from "./window.js";

let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

const first = ["heading"];
const calls = (page) => page.evaluate(() => window.stage.calls);
const button = (page, name) => page.getByRole("button", { name });

test("an opening that takes long is said, and then the chats are there", async () => {
  const page = await stand.page({ scene: "slow-start", first: ["status"] });
  await page.getByText("Opening your chats…").waitFor();
  await resume(page);
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.equal(await page.getByText("Opening your chats…").count(), 0);
  assert.equal(await page.locator("#app[role]").count(), 0);
  assert.deepEqual(page.faults, []);
});

test("why the app does not start stays in the window", async () => {
  const page = await stand.page({ scene: "no-start", first: ["alert"] });
  const reason = "Goldcrest could not start. The chats could not be read.";
  await page.getByText(reason).waitFor();
  await page.waitForTimeout(900);
  assert.equal(await page.locator("#app").textContent(), reason);
  await page.context().close();
});

test("a damaged database is explained, and a copy is restored without a restart", async () => {
  const page = await stand.page({ scene: "damaged", first });
  const heading = page.getByRole("heading", { name: "The file with your chats is damaged" });
  assert(await heading.evaluate((element) => element === document.activeElement));
  const main = page.getByRole("main");
  assert.match(await main.innerText(), /goldcrest-set-aside-2026-11-22\.db/);
  assert.match(await main.innerText(), /12 chats, 3\.4 MB/);
  await button(page, "Show the folder").click();
  // By keyboard: the first button is the best option.
  await heading.focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  await page.getByText(/goes on from the backup of 21 November 2026/).waitFor();
  assert.equal(await heading.count(), 0);
  assert.deepEqual(await calls(page), [["showDataFolder"], ["restoreCopy", "day-2026-11-21.db"]]);
  assert.deepEqual(page.faults, []);
});

test("an older copy or an empty file can be had instead", async () => {
  const page = await stand.page({ scene: "damaged", first });
  await page.getByText("Other backups").click();
  await button(page, "Backup of 20 November 2026").click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.deepEqual(await calls(page), [["restoreCopy", "day-2026-11-20.db"]]);

  const other = await stand.page({ scene: "damaged", first });
  await button(other, "Start with an empty one").click();
  await other.getByRole("textbox", { name: "Message" }).waitFor();
  assert.deepEqual(await calls(other), [["startEmpty"]]);
});

test("only what helps is offered, and nothing is cut off at 420 pixels", async () => {
  for (const [scene, names] of [
    ["full", ["Try again", "Show the folder", "Quit"]],
    [
      "folder-missing",
      [
        "Choose where it is…",
        "Begin in the default folder",
        "Try again",
        "Show the folder",
        "Quit",
      ],
    ],
    ["damaged-alone", ["Start with an empty one", "Try again", "Show the folder", "Quit"]],
    [
      "missing",
      [
        "Restore the backup of 21 November 2026",
        "Start with an empty one",
        "Try again",
        "Show the folder",
        "Quit",
      ],
    ],
    [
      "damaged-part",
      [
        "Restore the backup of 21 November 2026",
        "Start with an empty one",
        "Open it as it is",
        "Try again",
        "Show the folder",
        "Quit",
      ],
    ],
  ]) {
    const page = await stand.page({ scene, first, width: 420, height: 720 });
    assert.deepEqual(await page.getByRole("button").allInnerTexts(), names, scene);
    const cut = await page.evaluate(
      () =>
        [...document.querySelectorAll("main *")].filter(
          (element) => element.getBoundingClientRect().right > innerWidth,
        ).length,
    );
    assert.equal(cut, 0, scene);
  }
});

test("a damaged file is opened as it is, and what is wrong is said in full", async () => {
  const page = await stand.page({ scene: "damaged-part", first });
  await page.getByText("database disk image is malformed").waitFor();
  await button(page, "Open it as it is").click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.deepEqual(await calls(page), [["openDamaged"]]);
});

test("a full disk is tried again, or the app is left", async () => {
  const page = await stand.page({ scene: "full", first });
  await button(page, "Quit").click();
  await button(page, "Try again").click();
  await page.getByRole("textbox", { name: "Message" }).waitFor();
  assert.deepEqual(await calls(page), [["quit"], ["retryStart"]]);
});

test("a way that fails says why, and meanwhile no other can be taken", async () => {
  const page = await stand.page({ scene: "damaged", first });
  await page.evaluate(() => {
    window.stage.startEmpty = () =>
      new Promise((_, fail) => {
        window.fail = () => fail({ code: "store", message: "The folder is gone." });
      });
  });
  await button(page, "Start with an empty one").click();
  await page.getByRole("status").getByText("Making an empty file…").waitFor();
  for (const name of ["Restore the backup of 21", "Start with an empty one", "Try again"])
    assert(await button(page, name).isDisabled(), name);
  await page.evaluate(() => window.fail());
  await page.getByRole("alert").getByText("The folder is gone.").waitFor();
  assert(!(await button(page, "Try again").isDisabled()));
});

test("a data folder that is gone is chosen again, or left for the default one", async () => {
  for (const [name, call] of [
    ["Choose where it is…", "chooseDataFolder"],
    ["Begin in the default folder", "beginInDefaultFolder"],
  ]) {
    const page = await stand.page({ scene: "folder-missing", first });
    await button(page, name).click();
    await page.getByText("Goldcrest starts again…").waitFor();
    assert.equal(await button(page, "Try again").isDisabled(), true);
    assert.deepEqual(await calls(page), [[call]]);
  }
});
