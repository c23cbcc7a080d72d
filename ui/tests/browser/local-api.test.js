// The local API in the settings and in the header, and what the window says about its socket.
import assert from "node:assert/strict";
import { button, calls, scenes, soon } from "./window.js";

const scene = scenes();
const SWITCH = "Let other programs on this computer use Goldcrest";
const ADDRESS = "http://127.0.0.1:8484/v1";

async function openSettings(page, tab = "Local API") {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: tab }).click();
}
const panel = (page) => page.getByRole("tabpanel");
const status = (page, words) => panel(page).getByRole("status").getByText(words, { exact: true });
const pill = (page) => page.getByRole("button", { name: /^Local API: / });
const focused = (page) => page.evaluate(() => document.activeElement?.textContent?.trim());

/** Text that a button copies. */
async function copied(page, name) {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await button(page, name).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

scene("it is off, and the header says nothing of it", {}, async (page) => {
  assert.equal(await pill(page).count(), 0);
  await openSettings(page);
  await status(page, "Off").waitFor();
  await panel(page).getByText("It is made when you switch this on.").waitFor();
  assert.equal(await panel(page).getByText(ADDRESS).count(), 0);
  await page.getByRole("tab", { name: "Privacy" }).click();
  await panel(page).getByText("opens no network connection").waitFor();
  assert.equal(await panel(page).getByText("The local API is on.").count(), 0);
});

scene("switched on it shows its address, and its key once", {}, async (page) => {
  await openSettings(page);
  await page.getByRole("switch", { name: SWITCH }).click();
  await status(page, "Listening").waitFor();
  await panel(page).getByText("This is the new key. Copy it now: it is not shown again.").waitFor();
  assert.equal(await copied(page, "Copy the address"), ADDRESS);
  assert.match(await copied(page, "Copy the key"), /^goldcrest-\w{20,}$/u);
  assert.equal(
    await copied(page, "Copy the variables"),
    `OPENAI_BASE_URL=${ADDRESS}\nOPENAI_API_KEY=your-key`,
  );
  await page.getByRole("tab", { name: "Privacy" }).click();
  await page.getByRole("tab", { name: "Local API" }).click();
  await panel(page).getByText("This is the new key.").waitFor();
  await button(page, "Close").click();
  await pill(page).click();
  await panel(page).getByText("A key is set.").waitFor();
  assert.equal(
    await panel(page)
      .getByText(/^goldcrest-/u)
      .count(),
    0,
  );
  await page.getByRole("switch", { name: SWITCH }).click();
  await status(page, "Off").waitFor();
  await page.getByRole("switch", { name: SWITCH }).click();
  await status(page, "Listening").waitFor();
  assert.equal(await panel(page).getByText("This is the new key.").count(), 0);
});

scene("a port in use is said beside the port, and tried again", {}, async (page) => {
  await openSettings(page);
  const port = page.getByRole("spinbutton", { name: "Port" });
  await port.fill("9999");
  await port.press("Tab");
  await page.getByRole("switch", { name: SWITCH }).click();
  const alert = panel(page).getByRole("alert");
  await alert.getByText("Port 9999 is in use by another program.").waitFor();
  await status(page, "Not running").waitFor();
  assert.match(await pill(page).getAttribute("data-tip"), /Port 9999 is in use/u);
  await button(page, "Try again").click();
  await soon(async () => assert.equal((await calls(page, "setApi")).length, 3));
  await alert.waitFor();
  await port.fill("80");
  await port.press("Tab");
  assert.equal(await port.inputValue(), "1024", "kept within its bounds");
  await panel(page).getByText("http://127.0.0.1:1024/v1", { exact: true }).waitFor();
  assert.equal(await alert.count(), 0);
});

scene("a new key is asked about first, by keyboard too", { scene: "api" }, async (page) => {
  await openSettings(page);
  await button(page, "New key…").focus();
  await page.keyboard.press("Enter");
  const question = page.getByRole("group", { name: "Replace the key?" });
  await question.getByText("Programs with the old key lose access at once.").waitFor();
  assert.equal(await focused(page), "Cancel");
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  assert.equal(await focused(page), "New key…");
  assert.deepEqual(await calls(page, "replaceApiKey"), []);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Enter");
  await panel(page).getByText("This is the new key.").waitFor();
  await soon(async () => assert.equal(await focused(page), "Copy the key"));
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await panel(page).getByText("A key is set.").waitFor();
  assert.equal(await focused(page), "New key…");
  assert.equal((await calls(page, "replaceApiKey")).length, 1);
});

scene("sites are saved as browsers name them, and others are named", {}, async (page) => {
  await openSettings(page);
  const sites = page.getByRole("textbox", { name: "Web pages that may use it" });
  await sites.fill("https://example.org/\nexample");
  await button(page, "Save").click();
  await panel(page)
    .getByRole("alert")
    .getByText(/“example” is not/u)
    .waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await sites.inputValue(), "");
  assert.equal(await button(page, "Save").count(), 0);
  await sites.fill("https://Example.org/\nhttp://localhost:3000");
  await button(page, "Save").click();
  await button(page, "Save").waitFor({ state: "detached" });
  const [, , , origins] = (await calls(page, "setApi")).at(-1);
  assert.deepEqual(origins, ["https://example.org", "http://localhost:3000"]);
  assert.equal(await sites.inputValue(), origins.join("\n"));
});

scene(
  "the header counts running requests and leads to the settings",
  { scene: "api" },
  async (page) => {
    await button(page, "Local API: listening, requests: 2 running, 1 waiting").waitFor();
    assert.equal((await pill(page).innerText()).replace(/\s+/gu, " "), "API · 2");
    await page.evaluate(() => window.stage.setApiRequests(0, 0));
    await button(page, "Local API: listening").waitFor();
    await pill(page).hover();
    await page.getByRole("tooltip").getByText(`Local API at ${ADDRESS}`).waitFor();
    await pill(page).focus();
    await page.keyboard.press("Enter");
    await status(page, "Listening").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("local api");
    await page.keyboard.press("Enter");
    await status(page, "Listening").waitFor();
  },
);

scene("its failure is announced and shown in the header", { scene: "api-failed" }, async (page) => {
  await button(page, "Local API: not running").waitFor();
  await page
    .locator("main header")
    .getByRole("status")
    .getByText(/Port 9999 is in use/u)
    .waitFor();
});

scene("the window says that a socket is open, and to whom", { scene: "api" }, async (page) => {
  const offline = button(page, "Offline: network connections");
  assert.match(await offline.getAttribute("data-tip"), /127\.0\.0\.1 and \[::1\].*its key/u);
  await openSettings(page, "Privacy");
  await panel(page).getByText("Network connections: 0").waitFor();
  await panel(page).getByText("the local API that you switched on").waitFor();
  await panel(page).getByText("The local API is on.").waitFor();
  const report = await copied(page, "Copy report");
  assert.match(report, /goldcrest-serve, the local API that you switched on, has 2 sockets/u);
  await button(page, "Settings → Local API").click();
  await page.getByRole("switch", { name: SWITCH }).click();
  await page.getByRole("tab", { name: "Privacy" }).click();
  await panel(page).getByText("What stays here").waitFor();
  assert.equal(await panel(page).getByText("The local API is on.").count(), 0);
});

for (const width of [420, 210])
  scene(`the header fits a window of ${width} pixels`, { scene: "api", width }, async (page) => {
    await page.evaluate(() => window.stage.setApiRequests(12, 3));
    await page.getByRole("button", { name: /^Model: / }).waitFor();
    const overflow = await page
      .locator("main header")
      .evaluate(
        (header) =>
          [...header.querySelectorAll("button")]
            .map((each) => each.getBoundingClientRect())
            .filter(({ width, left, right }) => width > 0 && (left < 0 || right > innerWidth))
            .length,
      );
    assert.equal(overflow, 0);
    if (width === 420) assert.equal(await pill(page).innerText(), "12");
    await button(page, "More of this chat").click();
    await page.getByRole("menuitem", { name: "Local API" }).click();
    await status(page, "Listening").waitFor();
    if (width < 420) return;
    const wide = await panel(page).evaluate((panel) => panel.scrollWidth - panel.clientWidth);
    assert.equal(wide, 0);
  });
