import assert from "node:assert/strict";
import { answered, button, calls, chats, log, message, scenes, soon } from "./window.js";

const scene = scenes();

/** Last saved settings. */
const saved = async (page) => (await calls(page, "saveSettings")).at(-1)?.[1];

const number = (page, name) => page.getByRole("spinbutton", { name });

/** Opens a page of the settings. */
async function open(page, name) {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name }).click();
}

scene("settings are saved, and the theme is set at once", {}, async (page) => {
  await open(page, "General");
  await page.getByRole("radio", { name: "Dark" }).check();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("Tab");
  await page.getByRole("tab", { name: "Answers" }).click();
  await page.getByRole("spinbutton", { name: "Temperature" }).fill("9");
  await page.getByRole("spinbutton", { name: "Temperature" }).press("Tab");
  await page.getByRole("textbox", { name: "Instructions" }).fill("Answer briefly.");
  await page.getByRole("switch", { name: "Think before answering" }).click();
  const lookup = page.getByRole("switch", { name: "Faster repeats" });
  const wasOn = await lookup.isChecked();
  await lookup.click();
  await page.getByRole("tab", { name: "Model" }).click();
  await page.getByRole("radio", { name: "8-bit" }).check();
  await soon(async () => {
    const settings = await saved(page);
    assert.equal(settings?.kvType, "q8_0");
    assert.equal(settings.lookup, !wasOn);
    assert.equal(settings.theme, "dark");
    assert.equal(settings.samplingChanges.temperature, 5, "kept within its bounds");
    assert.equal(settings.instructions, "Answer briefly.");
    assert.equal(settings.thinking, false);
  });
});

scene("in the dark what is chosen stands out, and text is lighter", {}, async (page) => {
  await chats(page).getByText("Sourdough").click();
  await open(page, "General");
  const weight = () =>
    log(page)
      .locator(".answer")
      .first()
      .evaluate((answer) => Number(getComputedStyle(answer).fontWeight));
  /** Lightness of the selected segment and of its track, read from pixels. */
  const lightness = async () => {
    const track = page.getByRole("radiogroup", { name: "Theme" });
    await page.waitForTimeout(300);
    const picture = (await track.screenshot()).toString("base64");
    return page.evaluate(
      async ([picture, share]) => {
        const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        const at = (x) => context.getImageData(Math.round(x), image.height / 2, 1, 1).data[0];
        return [at(image.width * share), at(image.width / 3 + 4)];
      },
      [picture, 0.97],
    );
  };
  await page.getByRole("radio", { name: "Light" }).check();
  const before = await weight();
  await page.getByRole("radio", { name: "Dark" }).check();
  const [chosen, track] = await lightness();
  assert(chosen > track, `${chosen} on ${track}`);
  assert((await weight()) < before, "light on dark looks bolder");
});

scene("icons keep the weight of the text, however large", {}, async (page) => {
  const stroke = () =>
    button(page, "New chat")
      .first()
      .locator("svg")
      .evaluate((svg) => parseFloat(getComputedStyle(svg).strokeWidth));
  const before = await stroke();
  await open(page, "General");
  await page.getByRole("combobox", { name: "Zoom" }).selectOption("200");
  await soon(async () =>
    assert.equal((await stroke()).toFixed(2), (before / Math.sqrt(2)).toFixed(2)),
  );
});

scene("what is not set is as the model asks for it", {}, async (page) => {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: "Answers" }).click();
  const temperature = page.getByRole("spinbutton", { name: "Temperature" });
  const reset = page.getByRole("button", { name: "Use the model’s defaults" });
  assert.equal(await temperature.inputValue(), "");
  assert.equal(await temperature.getAttribute("placeholder"), "0.6", "what SmolLM3 asks for");
  assert(await reset.isDisabled());
  for (const undo of [() => temperature.fill(""), () => reset.click()]) {
    await temperature.fill("0.9");
    await temperature.press("Tab");
    await soon(async () => assert.equal((await saved(page))?.samplingChanges.temperature, 0.9));
    await undo();
    await temperature.press("Tab");
    await soon(async () => assert.equal((await saved(page)).samplingChanges.temperature, null));
    assert.equal(await temperature.inputValue(), "");
    assert(await reset.isDisabled());
  }
});

scene("Ctrl+Enter sends where a person wants it so", { rate: 4000 }, async (page) => {
  await page.keyboard.press("Control+,");
  await page.getByRole("radio", { name: "Ctrl+Enter" }).check();
  await page.keyboard.press("Escape");
  const box = page.getByRole("textbox", { name: "Message", exact: true });
  await box.fill("one");
  await box.press("Enter");
  assert.equal(await box.inputValue(), "one\n");
  await box.press("Control+Enter");
  await answered(page);
  assert.equal(await box.inputValue(), "");
});

scene("every number is saved where it belongs, whole and within its bounds", {}, async (page) => {
  await open(page, "Answers");
  const set = async (name, value) => {
    await number(page, name).fill(value);
    await number(page, name).press("Tab");
  };
  for (const [name, value] of [
    ["Maximum answer length", "500"],
    ["Temperature", "0.7"],
    ["Top-p", "0"],
    ["Top-k", "40.4"],
    ["Min-p", "0.05"],
    ["Repeat penalty", "1.1"],
    ["Seed", "7"],
  ])
    await set(name, value);
  await page.getByRole("tab", { name: "Model" }).click();
  await set("Threads", "99");
  await page.getByRole("combobox", { name: "Context" }).selectOption({ value: "8192" });
  await soon(async () => {
    const { maxTokens, threads, contextLength, samplingChanges } = await saved(page);
    assert.deepEqual([maxTokens, threads, contextLength], [500, 16, 8192]);
    assert.deepEqual(samplingChanges, {
      temperature: 0.7,
      topP: 0.01,
      topK: 40,
      minP: 0.05,
      repeatPenalty: 1.1,
      seed: 7,
    });
  });
  await set("Threads", "0");
  await soon(async () => assert.equal((await saved(page)).threads, 1));
  await set("Threads", "");
  await soon(async () => assert.equal((await saved(page)).threads, null));
});

scene("each context length has its memory, before it is chosen", {}, async (page) => {
  await open(page, "Model");
  const context = page.getByRole("combobox", { name: "Context" });
  await soon(async () => assert.equal(await context.getByRole("option").count(), 7));
  const words = await context.getByRole("option").allInnerTexts();
  assert.deepEqual(words.slice(0, 2), [
    "Automatic · 32,768 tokens · 2.4 GB (1.3 GB in 8-bit)",
    "4,096 tokens · 302 MB (160 MB in 8-bit)",
  ]);
  assert.equal(
    words.at(-1),
    "131,072 tokens · 9.7 GB (5.1 GB in 8-bit) · longer than trained · does not fit",
  );
  await context.selectOption({ value: "16384" });
  await soon(async () => assert.equal((await saved(page)).contextLength, 16384));
  const precision = page.getByText("8-bit uses half the memory");
  await precision
    .getByText("16-bit takes 1.2 GB for 16,384 tokens, 8-bit 642 MB for 16,384 tokens.")
    .waitFor();
  // The options immediately reflect the selected precision.
  await page.getByRole("radio", { name: "8-bit" }).check({ force: true });
  assert.equal(
    (await context.getByRole("option").allInnerTexts()).at(-1),
    "131,072 tokens · 9.7 GB (5.1 GB in 8-bit) · longer than trained",
  );
  await context.selectOption({ index: 0 });
  await soon(async () => assert.equal((await saved(page)).contextLength, null));
  await precision
    .getByText("16-bit takes 2.4 GB for 32,768 tokens, 8-bit 2.6 GB for 65,536 tokens.")
    .waitFor();
});

scene(
  "a setting that a flag or the environment overrides cannot be changed, and says why",
  { scene: "overridden" },
  async (page) => {
    await open(page, "Model");
    for (const [role, name, value, by] of [
      ["combobox", "Device", "cpu", "GOLDCREST_DEVICE sets this to cpu."],
      ["spinbutton", "Threads", "3", "GOLDCREST_THREADS sets this to 3."],
      ["combobox", "Context", "5000", "--context sets this to 5000."],
    ]) {
      const control = page.getByRole(role, { name });
      assert.equal(await control.isDisabled(), true, name);
      assert.equal(await control.inputValue(), value);
      const hint = await control.getAttribute("aria-describedby");
      const words = await page.locator(`[id="${hint}"]`).innerText();
      assert.ok(words.includes(`${by} Start Goldcrest without it to choose here.`), words);
    }
    assert.equal(await page.getByRole("radio", { name: "8-bit" }).isDisabled(), false);
  },
);

scene(
  "a context length that is not among the choices stays",
  { scene: "own-settings" },
  async (page) => {
    await open(page, "Model");
    const shown = (name) =>
      page
        .getByRole("combobox", { name })
        .evaluate((select) => select.selectedOptions[0]?.textContent);
    assert.equal(await shown("Context"), "12,345 tokens");
    assert.equal(await shown("Unload when idle"), "45 minutes");
  },
);

scene("when a model is unloaded and where downloads go can be chosen", {}, async (page) => {
  await open(page, "Model");
  const idle = page.getByRole("combobox", { name: "Unload when idle" });
  assert.equal(await idle.inputValue(), "10");
  assert.deepEqual(await idle.getByRole("option").allInnerTexts(), [
    "5 minutes",
    "10 minutes",
    "30 minutes",
    "60 minutes",
    "Never",
  ]);
  await idle.selectOption("Never");
  await soon(async () => assert.equal((await saved(page)).unloadMinutes, null));
  await page.getByText("~/.cache/huggingface/hub (the Hugging Face cache").waitFor();
  await page.getByRole("button", { name: "Choose the download folder…" }).click();
  await page.getByText("/mnt/models").waitFor();
  await soon(async () => assert.equal((await saved(page)).downloadFolder, "/mnt/models"));
  await page.getByRole("button", { name: "Reset “Download folder”" }).click();
  await soon(async () => assert.equal((await saved(page)).downloadFolder, null));
});

scene("what is chosen is saved, and shows at once", { rate: 4000 }, async (page) => {
  await chats(page).getByText("Sourdough").click();
  const stats = log(page).getByRole("button", { name: /tokens\/s/ });
  const opacity = () => stats.last().evaluate((line) => getComputedStyle(line).opacity);
  await message(page).hover();
  await soon(async () => assert.equal(await opacity(), "0"));
  await stats.last().hover();
  await soon(async () => assert.equal(await opacity(), "1", "under the pointer"));
  await open(page, "General");
  await page.getByRole("radio", { name: "Light" }).check();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.getByRole("radio", { name: "System" }).check();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), undefined);
  await page.getByRole("switch", { name: "Show speed under answers" }).click();
  await page.getByRole("tab", { name: "Model" }).click();
  await page.getByRole("combobox", { name: "Device" }).selectOption("GPU");
  await soon(async () => {
    const { theme, showStats, device } = await saved(page);
    assert.deepEqual([theme, showStats, device], ["system", true, "gpu"]);
  });
  await page.keyboard.press("Escape");
  await message(page).hover();
  await soon(async () => assert.equal(await opacity(), "1"));
});

scene("the model's page says what is used now, and why", {}, async (page) => {
  await page.evaluate(async () => {
    const { model } = (await window.stage.snapshot()).model.status;
    const contextNote = "131,072 tokens were requested, but 40,960 are used.";
    const status = { state: "ready", model: { ...model, contextLength: 40960, contextNote } };
    window.stage.emit({ type: "model", model: { status, error: null } });
  });
  await open(page, "Model");
  const words = await page.getByRole("tabpanel").innerText();
  assert.match(words, /Now: CPU, AVX-512 VNNI, 8 threads\. No GPU was found by a Vulkan/);
  assert.match(words, /Now: 40,960\. 131,072 tokens were requested, but 40,960 are used\./);
  assert.match(words, /16-bit takes 2\.4 GB for 32,768 tokens, 8-bit 2\.6 GB for 65,536 tokens\./);
});

scene("About names the version, the data folder and the log file", {}, async (page) => {
  await open(page, "About");
  const words = await page.getByRole("tabpanel").innerText();
  assert.match(words, /Version 0\.1\.0/);
  assert.match(words, /Data folder\s+~\/\.local\/share\/goldcrest\s+Log file/);
  assert.match(words, /Log file\s+~\/\.local\/share\/goldcrest\/logs\/goldcrest\.log/);
});

scene(
  "About lists the licences of what the app contains, and shows one at a time",
  {},
  async (page) => {
    await open(page, "About");
    const tab = page.getByRole("tabpanel");
    await tab.getByText("Licences of the software in Goldcrest").click();
    const font = tab.getByText(/^@fontsource\/noto-sans-math/);
    await font.click();
    await tab.getByText("SIL OPEN FONT LICENSE Version 1.1").first().waitFor();
    await tab.getByText(/^highlight\.js/).click();
    await tab.getByText("Redistributions in binary form must reproduce").first().waitFor();
    assert.equal(await tab.locator("pre").count(), 1, "the one before is closed");
    await font.focus();
    await page.keyboard.press("Enter");
    await tab.getByText("SIL OPEN FONT LICENSE Version 1.1").first().waitFor();
  },
);

const search = (page) => page.getByRole("combobox", { name: "Search the settings" });
const hits = (page) => page.getByRole("listbox", { name: "Settings found" }).getByRole("option");

scene(
  "each page scrolls below the tabs, which stay in view",
  { width: 420, height: 400 },
  async (page) => {
    await page.keyboard.press("Control+,");
    const dialog = page.getByRole("dialog", { name: "Settings" });
    for (const tab of await dialog.getByRole("tab").all()) {
      await tab.click();
      const [content, height] = await dialog.evaluate((each) => [
        each.scrollHeight,
        each.clientHeight,
      ]);
      assert.ok(content <= height, `${await tab.textContent()}: ${content} of ${height} pixels`);
    }
  },
);

scene("a search finds settings on all pages, and goes to where they are", {}, async (page) => {
  await page.keyboard.press("Control+,");
  await page.keyboard.type("dark");
  assert.equal(await search(page).inputValue(), "dark", "what is typed anywhere is looked for");
  assert.match(await hits(page).first().innerText(), /Theme\s+General/);
  await page.keyboard.press("Enter");
  const tab = page.getByRole("tab", { name: "General" });
  await soon(async () => assert.equal(await tab.getAttribute("aria-selected"), "true"));
  assert(await page.getByRole("radio", { name: "System" }).evaluate(isFocused));

  await page.keyboard.press("Control+f");
  await page.keyboard.type("sampl");
  await soon(async () => assert((await hits(page).count()) >= 6));
  const chosen = () => page.locator('[role=option][aria-selected="true"]').innerText();
  const first = await chosen();
  await page.keyboard.press("ArrowDown");
  assert.notEqual(await chosen(), first);
  await page.keyboard.press("ArrowUp");
  assert.equal(await chosen(), first);
  await page.keyboard.press("Escape");
  assert.equal(await search(page).inputValue(), "", "the first one ends the search");
  await page.getByRole("tabpanel", { name: "General" }).waitFor();

  await page.keyboard.type("gpu zoom");
  await page.getByText("No setting has “gpu zoom”").waitFor();
  await search(page).fill("licènces");
  await hits(page).first().locator("mark").getByText("Licences", { exact: true }).waitFor();
  await search(page).fill("network");
  await hits(page).first().click();
  await page.getByText("Network connections: 0, checked just now").waitFor();
});

const isFocused = (element) => element === document.activeElement;

scene("each value names its default, and is reset where it was changed", {}, async (page) => {
  await open(page, "General");
  const reset = button(page, "Reset “Zoom”");
  const zoom = page.getByRole("combobox", { name: "Zoom" });
  const usual = page.getByText("Default: 100 %.");
  assert((await usual.boundingBox()).width <= 1, "only a screen reader says it");
  assert.equal(await reset.count(), 0);
  await zoom.selectOption("150");
  assert((await usual.boundingBox()).width > 50);
  await reset.click();
  assert.equal(await zoom.inputValue(), "100");
  assert(await zoom.evaluate(isFocused), "the button goes, and the focus with it");
  assert.equal(await reset.count(), 0);
  await soon(async () => assert.equal((await saved(page)).zoom, 100));
});

scene("a page is reset at once, and that can be undone in the dialog", {}, async (page) => {
  await open(page, "Answers");
  const whole = button(page, "Reset this page");
  assert.equal(await whole.count(), 0);
  await page.getByRole("switch", { name: "Think before answering" }).click();
  await number(page, "Temperature").fill("0.3");
  await number(page, "Temperature").press("Tab");
  await whole.click();
  await soon(async () => assert.equal((await saved(page)).samplingChanges.temperature, null));
  await button(page, "Undo").click();
  await soon(async () => assert.equal(await number(page, "Temperature").inputValue(), "0.3"));
  const thinks = page.getByRole("switch", { name: "Think before answering" });
  assert.equal(await thinks.getAttribute("aria-checked"), "false");
});

scene("settings are undone and done again by key", {}, async (page) => {
  await open(page, "General");
  await page.getByRole("radio", { name: "Ctrl+Enter" }).check();
  await soon(async () => assert.equal((await saved(page))?.sendWith, "ctrl-enter"));
  await page.keyboard.press("Control+z");
  await soon(async () =>
    assert(!(await page.getByRole("radio", { name: "Ctrl+Enter" }).isChecked())),
  );
  await page.keyboard.press("Control+Shift+z");
  await soon(async () => assert(await page.getByRole("radio", { name: "Ctrl+Enter" }).isChecked()));
});

scene("Offline leads to the count of network connections and its report", {}, async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Offline: network connections" }).click();
  await page.getByText("Network connections: 0, checked just now").waitFor();
  const rows = page.getByRole("table").getByRole("row");
  assert.equal(await rows.count(), 4);
  assert.match(
    await rows.nth(3).innerText(),
    /WebKitWebProcess\s+4063, draws the window\s+0\s+6\s+0/,
  );
  await button(page, "Copy report").click();
  await button(page, "Copied").waitFor();
  const report = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(report, /^Goldcrest 0\.1\.0\nNetwork connections, checked \d{4}-/);
  await page.evaluate(() => {
    const { stage } = window;
    const check = stage.checkNetwork.bind(stage);
    stage.checkNetwork = async () => {
      const found = await check();
      found.processes[0].network = ["TCP 10.0.0.2:5 to 1.2.3.4:443"];
      return found;
    };
  });
  await button(page, "Check again").click();
  await page.getByText("Network connections: 1, checked just now").waitFor();
  await page.getByText("TCP 10.0.0.2:5 to 1.2.3.4:443").waitFor();
});

scene(
  "while a download runs, the app is not said to be offline",
  { scene: "download" },
  async (page) => {
    await page.getByRole("button", { name: "Downloading: network connections" }).click();
    await page.getByText("Network connections: 0, checked just now").waitFor();
    await page
      .getByText("goldcrest-fetch, the program that downloads the model you asked for, has 1")
      .waitFor();
  },
);
