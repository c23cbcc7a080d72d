// The offer on the first screen, downloads, and the models page.
import assert from "node:assert/strict";
import { ask, answered, button, calls, chats, message, scenes, soon } from "./window.js";

const scene = scenes();

const offer = (page) => page.getByRole("region", { name: "Get a model" });
const dialog = (page) => page.getByRole("dialog", { name: "Models", exact: true });
const row = (page, name) => dialog(page).getByRole("listitem", { name, exact: true });
const focused = (page) =>
  page.evaluate(
    () => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent,
  );

async function openModels(page) {
  await page.keyboard.press("Control+Shift+M");
  await dialog(page).waitFor();
}

/** Sets the duration of a download step. Tests of a single state make it infinite. */
const pace = (page, stepMs, steps = 40) =>
  page.evaluate((pace) => Object.assign(window.stage.downloads, pace), { stepMs, steps });

scene("the first screen leads with the model to get", { scene: "first" }, async (page) => {
  await offer(page).getByText("1.9 GB, free, about 9 tokens/s here", { exact: true }).waitFor();
  const more = offer(page).getByRole("button", { name: "Details" });
  assert.equal(await offer(page).getByText("Downloads once").isVisible(), false);
  await more.click();
  await offer(page).getByText("Fits this computer: about 9 tokens/s (estimated).").waitFor();
  await offer(page).getByText("Downloads once from huggingface.co").waitFor();
  await offer(page).getByText("Licence: Apache-2.0").waitFor();
  await more.click();
  assert.equal(await offer(page).getByText("Downloads once").isVisible(), false);
  assert.equal(await page.locator(".button.main").count(), 1, "one thing matters most");
  await button(page, "Open a model…").click();
  assert.deepEqual(await calls(page, "pickModel", "getModel"), [["pickModel"]]);
});

scene("with chats the offer is one line", { scene: "bundledModel" }, async (page) => {
  await offer(page).getByText("1.9 GB, free, about 9 tokens/s here").waitFor();
  const { height } = await offer(page).boundingBox();
  assert.ok(height < 50, `${height} px`);
  await button(page, "Get SmolLM3-3B").click();
  await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
});

scene(
  "one click downloads the model, and the chat goes on with it, with a notice",
  { scene: "first", rate: 4000 },
  async (page) => {
    await pace(page, 60_000);
    await button(page, "Get SmolLM3-3B").click();
    await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
    await ask(page, "What is this app?");
    await answered(page);
    await page.getByRole("log").getByText("Goldcrest is a desktop chat app").waitFor();
    await page
      .getByRole("button", {
        name: "Model: SmolLM2-135M-Instruct, ready, CPU, download of SmolLM3-3B: 0 %",
      })
      .click();
    const card = page.getByRole("dialog", { name: "Model", exact: true });
    await card.getByRole("button", { name: "Pause: SmolLM3-3B, Q4_K_M" }).click();
    await page.getByRole("status").getByText("Download of SmolLM3-3B paused.").waitFor();
    await card.getByText(/^Paused at .* of 1\.9 GB/).waitFor();
    await pace(page, 20, 10);
    await card.getByRole("button", { name: "Resume: SmolLM3-3B, Q4_K_M" }).click();
    await page.getByText("SmolLM3-3B is downloaded and verified. Opening it now.").waitFor();
    await page.getByText("You are now talking to SmolLM3-3B.").waitFor();
    await page
      .getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU", exact: true })
      .waitFor();
  },
);

scene(
  "the button of a download keeps the focus and its place in all of its states",
  { scene: "bundledModel" },
  async (page) => {
    await pace(page, 60_000);
    const get = button(page, "Get SmolLM3-3B");
    await get.focus();
    const place = await get.boundingBox();
    const box = await message(page).boundingBox();
    await page.keyboard.press("Enter");
    const pause = button(page, "Pause: SmolLM3-3B, Q4_K_M");
    await pause.waitFor();
    assert.equal(await focused(page), "Pause: SmolLM3-3B, Q4_K_M");
    const emit = (download) =>
      page.evaluate(
        (download) => window.stage.setDownload("SmolLM3-Q4_K_M.gguf", download),
        download,
      );
    const total = 1_915_305_312;
    for (const download of [
      { state: "running", done: 5e6, total, bytesPerSecond: 11.1e6, secondsLeft: 8 },
      { state: "running", done: 1.9e9, total, bytesPerSecond: 111.1e6, secondsLeft: 4321 },
      { state: "running", done: 1.9e9, total, bytesPerSecond: null, secondsLeft: null },
      { state: "verifying", done: 1e9, total },
      { state: "paused", done: 1e9, total },
    ]) {
      await emit(download);
      await soon(async () =>
        assert.equal(
          Number(await offer(page).getByRole("progressbar").getAttribute("value")),
          download.done / total,
        ),
      );
      assert.deepEqual(await message(page).boundingBox(), box, "nothing jumps");
      if (download.state === "verifying") {
        const checking = button(page, "Checking…: SmolLM3-3B, Q4_K_M");
        assert.equal(await checking.getAttribute("aria-disabled"), "true");
      }
      const now = await offer(page).getByRole("button").first().boundingBox();
      assert.deepEqual([now.x, now.y], [place.x, place.y]);
    }
    assert.equal(await focused(page), "Resume: SmolLM3-3B, Q4_K_M");
    await page.keyboard.press("Enter");
    assert.equal(await focused(page), "Pause: SmolLM3-3B, Q4_K_M");
    assert.deepEqual(
      (await calls(page, "getModel", "pauseDownload")).map(([name]) => name),
      ["getModel", "getModel"],
    );
  },
);

scene(
  "a download that waits for the network says why, and when it is tried again",
  { scene: "download-waiting" },
  async (page) => {
    await offer(page).getByText("Can't reach huggingface.co").waitFor();
    await offer(page).getByText("trying again within 30 s").waitFor();
    await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
  },
);

scene(
  "a download that failed says why, and goes on",
  { scene: "download-failed" },
  async (page) => {
    await offer(page).getByText("The connection was lost").waitFor();
    assert.equal(await offer(page).getByText("Your chats will switch to").count(), 0);
    await button(page, "Try again: SmolLM3-3B, Q4_K_M").click();
    await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
    assert.deepEqual(await calls(page, "getModel"), [["getModel", "SmolLM3-Q4_K_M.gguf"]]);
  },
);

scene(
  "a file that is on this computer is offered instead of the download",
  { scene: "first-found" },
  async (page) => {
    await offer(page).getByText("1.9 GB, found on this computer (LM Studio)").waitFor();
    await button(page, "Open SmolLM3-3B, Q4_K_M").click();
    await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
    await offer(page).waitFor({ state: "detached" });
  },
);

scene(
  "a file that is found is shown while it is checked, and offered when it is",
  { scene: "first-checking" },
  async (page) => {
    await offer(page)
      .getByText("SmolLM3-3B was found on this computer (Downloads). Checking the file: 42 %")
      .waitFor();
    const bar = offer(page).getByRole("progressbar", { name: "Checking SmolLM3-3B, Q4_K_M" });
    assert.equal(Number(await bar.getAttribute("value")).toFixed(2), "0.42");
    // Offered even if its drive is slow.
    await button(page, "Get SmolLM3-3B").waitFor();
    assert.equal(await page.locator(".offer .button.main").count(), 0);
    await openModels(page);
    const here = dialog(page).getByRole("list", { name: "On this computer" });
    await here.getByText("Checking the file: 42 %").waitFor();
    await page.keyboard.press("Escape");
    await page.evaluate(() => {
      const { entries } = window.stage.list;
      const checked = { ...entries[1], authenticity: "official", verifiedBytes: null };
      window.stage.setList({ entries: [checked, ...entries.slice(2)] });
    });
    await button(page, "Open SmolLM3-3B, Q4_K_M").click();
    await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
  },
);

scene(
  "a file of somebody else's making does not take the place of the download",
  { scene: "first-other" },
  async (page) => {
    await button(page, "Get SmolLM3-3B").waitFor();
    await offer(page)
      .getByText(
        "Also on this computer: SmolLM3-3B-notes, Q4_K_M, in LM Studio (not the official file).",
      )
      .waitFor();
    await button(page, "Open SmolLM3-3B-notes, Q4_K_M").click();
    assert.deepEqual(
      (await calls(page, "openModel", "getModel")).map(([name]) => name),
      ["openModel"],
    );
  },
);

for (const [name, words] of [
  ["does-not-fit", "It needs 2.5 GB of memory, which is more than this computer has free."],
  ["no-room", "Its download needs 1.9 GB on the disk, and 1.2 GB are free."],
])
  scene(
    `what speaks against the model is said, and it can be got: ${name}`,
    { scene: name },
    async (page) => {
      await offer(page).getByText(words).waitFor();
      assert.equal(
        await offer(page).getByText("tokens/s here").count(),
        name === "no-room" ? 1 : 0,
      );
      await button(page, "Get SmolLM3-3B").click();
      await button(page, "Pause: SmolLM3-3B, Q4_K_M").waitFor();
    },
  );

scene("the models page has the facts of each model, in words", { scene: "found" }, async (page) => {
  await openModels(page);
  const facts = async (name) => (await row(page, name).innerText()).replace(/\s+/gu, " ");
  assert.match(
    await facts("SmolLM3-3B Q4_K_M"),
    /4-bit · 1\.9 GB · Fits · about 9 tokens\/s \(estimated\) · 3\.3 GB of memory at 16,384 tokens Official file Apache-2\.0 ggml-org on Hugging Face LM Studio/u,
  );
  const large = "smollm3-3b-finetuned-on-seven-years-of-my-own-notes-and-letters F16";
  assert.match(await facts(large), /Does not fit .* Jan It needs 7\.6 GB/u);
  const broken = row(page, "نموذج صغير Q5_K_M");
  await broken.getByText("The file ends early: 1.2 GB of 2.2 GB are there.").waitFor();
  assert.equal(await broken.getByRole("button").count(), 1, "it cannot be opened");
  await dialog(page).getByText("It has the size of the official file").waitFor();
  await dialog(page)
    .getByText("Downloads go to ~/.cache/huggingface/hub, which has 212.4 GB free.")
    .waitFor();
  await row(page, "SmolLM2-135M-Instruct Q4_1").getByText("Open", { exact: true }).waitFor();
  await button(page, "More for SmolLM2-135M-Instruct, Q4_1").click();
  assert.deepEqual(await page.getByRole("menuitem").locator(".label").allInnerTexts(), [
    "Check this model",
    "Show in folder",
  ]);
});

scene(
  "many models are grouped by their places and searched, and what does not run is folded away",
  { scene: "collection" },
  async (page) => {
    await openModels(page);
    const groups = () => dialog(page).locator(".place").allInnerTexts();
    assert.deepEqual(await groups(), [
      "LM Studio",
      "Ollama",
      "Downloads",
      "Jan",
      "comes with Goldcrest",
    ]);
    await row(page, "Llama 3.2 3B Instruct Q4_K_M").getByText("3.2B parameters").waitFor();
    const search = dialog(page).getByRole("searchbox", {
      name: "Search the models on this computer",
    });
    await search.fill("qwen ollama");
    assert.deepEqual(await groups(), ["Ollama"]);
    await row(page, "Qwen3 4B Q4_K_M").waitFor();
    await search.fill("mistral");
    await dialog(page).getByText("No model on this computer has “mistral” in its name.").waitFor();
    await search.fill("");
    const gemma = row(page, "gemma-3-4b-it Q4_K_M");
    assert.equal(await gemma.isVisible(), false);
    await dialog(page).getByText("2 files that Goldcrest cannot run").click();
    await gemma.getByText("This is a Gemma 3 model. Goldcrest runs SmolLM3").waitFor();
    assert.equal(await gemma.getByRole("button", { name: /^Open / }).count(), 0);
  },
);

scene(
  "another model is a click away in the header, and the composer says who wrote the last answer",
  { scene: "collection" },
  async (page) => {
    await chats(page).getByRole("button").first().click();
    await page.getByRole("log").waitFor();
    const pill = page.getByRole("button", { name: /^Model: / });
    await pill.click();
    const card = page.getByRole("dialog", { name: "Model", exact: true });
    const names = await card.getByRole("region", { name: "Switch to" }).getByRole("button").all();
    assert.equal(names.length, 5, "the ones that were used last");
    await card.getByText("Another model reads this chat from its beginning.").waitFor();
    await card.getByRole("button", { name: "Qwen3 4B, Q4_K_M" }).click();
    await card.waitFor({ state: "hidden" });
    const id = "~/.ollama/models/blobs/sha256-3e4c";
    assert.deepEqual(await calls(page, "openModel"), [["openModel", id]]);
    const note = page.getByText(/^SmolLM3-3B wrote the last answer; the model rereads this chat/);
    await note.waitFor();
    await button(page, "Use SmolLM3-3B").click();
    await note.waitFor({ state: "detached" });
  },
);

scene(
  "what a model offers besides is in its menu, by key and by right click",
  { scene: "found" },
  async (page) => {
    await openModels(page);
    const more = button(page, "More for SmolLM3-3B, Q4_K_M");
    const chosen = async (label) => {
      await more.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("menuitem", { name: label }).press("Enter");
    };
    await more.focus();
    await page.keyboard.press("Enter");
    assert.deepEqual(await page.getByRole("menuitem").locator(".label").allInnerTexts(), [
      "Check this model",
      "Show in folder",
      "Open its page…",
      "Copy address",
      "Move to the trash",
    ]);
    await page.keyboard.press("Escape");
    assert.equal(await focused(page), "More for SmolLM3-3B, Q4_K_M");
    await chosen("Show in folder");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await chosen("Copy address");
    await soon(async () =>
      assert.match(
        await page.evaluate(() => navigator.clipboard.readText()),
        /SmolLM3-Q4_K_M\.gguf$/u,
      ),
    );
    await dialog(page).getByRole("status").getByText("The address is copied.").waitFor();
    await chosen("Open its page…");
    await page.getByText("This is the page that the model comes from.").waitFor();
    assert.equal(await page.getByText("The model wrote this address").count(), 0);
    await page.keyboard.press("Escape");
    await chosen("Check this model");
    await row(page, "SmolLM3-3B Q4_K_M").getByText("Goldcrest and candle agree").waitFor();
    await row(page, "SmolLM3-3B Q4_K_M").click({ button: "right" });
    await page.getByRole("menuitem", { name: "Move to the trash" }).click();
    await dialog(page).getByText("SmolLM3-3B, Q4_K_M is in the trash.").waitFor();
    await row(page, "SmolLM3-3B Q4_K_M").waitFor({ state: "detached" });
    assert(await dialog(page).evaluate((element) => element.contains(document.activeElement)));
    const path = "~/.lmstudio/models/ggml-org/SmolLM3-3B-GGUF/SmolLM3-Q4_K_M.gguf";
    assert.deepEqual(await calls(page, "showModel", "checkModel", "removeModel"), [
      ["showModel", path],
      ["checkModel", path],
      ["removeModel", path],
    ]);
  },
);

scene(
  "an address is copied without the clipboard interface, or it is said that it was not",
  { scene: "bundledModel" },
  async (page) => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error("there is none"));
    });
    await openModels(page);
    const copy = async () => {
      await button(page, "More for SmolLM3-3B, Q4_K_M").click();
      await page.getByRole("menuitem", { name: "Copy address" }).click();
    };
    await copy();
    await dialog(page).getByRole("status").getByText("The address is copied.").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(copied, /SmolLM3-Q4_K_M\.gguf$/u);
    assert.equal(await focused(page), "More for SmolLM3-3B, Q4_K_M");
    await page.evaluate(() => (document.execCommand = () => false));
    await copy();
    await dialog(page).getByRole("alert").getByText("The address could not be copied.").waitFor();
  },
);

scene(
  "a new chat looks again at what there is room for",
  { scene: "bundledModel" },
  async (page) => {
    await offer(page).getByText("tokens/s here").waitFor();
    // Simulates a disk that filled up meanwhile, which causes no event.
    await page.evaluate(() => (window.stage.list.freeBytes = 1_210_000_000));
    await chats(page).getByText("A story about a small bird").click();
    await offer(page).waitFor({ state: "detached" });
    await page.keyboard.press("Control+n");
    await offer(page).getByText("and 1.2 GB are free").waitFor();
  },
);

scene("the open model is unloaded and loaded again", {}, async (page) => {
  await openModels(page);
  await row(page, "SmolLM3-3B Q4_K_M").getByRole("button", { name: "Unload" }).click();
  await row(page, "SmolLM3-3B Q4_K_M").getByText("Unloaded", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Model: SmolLM3-Q4_K_M, unloaded" }).click();
  const card = page.getByRole("dialog", { name: "Model", exact: true });
  await card.getByText("The next message loads it again.").waitFor();
  await card.getByRole("button", { name: "Load now" }).click();
  await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
});

scene("a message to an unloaded model loads it", { scene: "ejected", rate: 4000 }, async (page) => {
  await page.getByText("Model unloaded").waitFor();
  await page.getByPlaceholder("Write a message to load the model").waitFor();
  await ask(page, "Tell me a story");
  await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
  await answered(page);
  await page.getByPlaceholder("Write a message", { exact: true }).waitFor();
});

scene(
  "an address is downloaded from, or says what is wrong with it",
  { scene: "bundledModel" },
  async (page) => {
    await pace(page, 60_000);
    await openModels(page);
    const address = page.getByRole("textbox", { name: "Get from an address" });
    await address.fill("http://example.org/model.gguf");
    await address.press("Enter");
    const alert = dialog(page).getByRole("alert");
    await alert.getByText("An address begins with https://.").waitFor();
    assert.equal(await address.getAttribute("aria-invalid"), "true");
    assert.equal(await address.getAttribute("aria-describedby"), await alert.getAttribute("id"));
    assert.equal(await address.inputValue(), "http://example.org/model.gguf");
    await address.fill("https://example.org/a-model.gguf");
    await address.press("Enter");
    await alert.getByText("Goldcrest can verify only files of Hugging Face.").waitFor();
    await address.fill(" https://huggingface.co/me/it/resolve/main/a-model.gguf ");
    assert.equal(await alert.count(), 0);
    await button(page, "Get from this address").click();
    const added = row(page, "a-model.gguf");
    await added.getByRole("progressbar", { name: "Download of a-model.gguf" }).waitFor();
    assert.equal(await address.inputValue(), "");
    await added.getByRole("button", { name: "Pause" }).click();
    await added.getByText(/^Paused at/).waitFor();
    await added.getByRole("button", { name: "More" }).click();
    await page.getByRole("menuitem", { name: "Discard the download" }).click();
    await dialog(page)
      .getByText("The incomplete download of a-model.gguf is being removed.")
      .waitFor();
    assert.deepEqual((await calls(page, "dropDownload")).length, 1);
  },
);

scene(
  "a file that comes in while its row has the focus leaves the focus on the page",
  {},
  async (page) => {
    await pace(page, 30, 4);
    await openModels(page);
    await button(page, "Get: SmolLM3-3B, Q8_0").focus();
    await page.keyboard.press("Enter");
    await row(page, "SmolLM3-3B Q8_0")
      .getByRole("button", { name: "Open SmolLM3-3B, Q8_0" })
      .waitFor();
    assert(await dialog(page).evaluate((element) => element.contains(document.activeElement)));
  },
);

scene(
  "the page says that it searches, and what it has not found",
  { scene: "scanning" },
  async (page) => {
    await openModels(page);
    await dialog(page).getByText("Looking for models…").waitFor();
    await dialog(page).getByText("Models of other apps and your downloads appear here.").waitFor();
    await page.evaluate(() => window.stage.setList({ scanning: false }));
    await dialog(page).getByText("No model was found yet.").waitFor();
    assert.equal(await dialog(page).getByText("Looking for models…").count(), 0);
  },
);

scene("from the models page the download folder is a step away", {}, async (page) => {
  await openModels(page);
  await button(page, "Change folder…").click();
  await page.getByRole("dialog", { name: "Settings" }).getByText("Download folder").waitFor();
  assert.equal(await dialog(page).count(), 0);
});

for (const [width, height] of [
  [420, 400],
  [210, 200],
])
  scene(
    `the models page fits a window of ${width} pixels`,
    { scene: "found", width, height },
    async (page) => {
      await openModels(page);
      const cut = await dialog(page).evaluate((dialog) => {
        const { left, right } = dialog.getBoundingClientRect();
        return [...dialog.querySelectorAll("*:not(.unseen)")]
          .filter((each) => {
            const box = each.getBoundingClientRect();
            return box.width > 0 && (box.left < left - 1 || box.right > right + 1);
          })
          .map((each) => each.outerHTML.slice(0, 80));
      });
      assert.deepEqual(cut, []);
    },
  );

scene(
  "a download that failed is discarded where it is shown",
  { scene: "download-failed" },
  async (page) => {
    await offer(page).getByText("Download failed at 412 MB of 1.9 GB").waitFor();
    await offer(page)
      .getByRole("button", { name: /^Discard the download of/ })
      .click();
    await offer(page).getByRole("button", { name: "Get SmolLM3-3B" }).waitFor();
  },
);
