import assert from "node:assert/strict";
import { answered, ask, button, calls, message, resume, scenes } from "./window.js";

const scene = scenes();

const settingsPages = [
  "General",
  "Model",
  "Answers",
  "Tools",
  "Local API",
  "Chats and data",
  "Privacy",
  "Keyboard",
  "About",
];

scene(
  "the first start says what this is, and the bundled model answers right there",
  { scene: "first" },
  async (page) => {
    await page.getByText("It works offline, and nothing you write leaves it").waitFor();
    assert.equal(await button(page, "Open a model…").count(), 1);
    await page.getByRole("list", { name: "Suggestions" }).getByRole("button").first().click();
    await page
      .getByRole("log")
      .getByText(/on (this|your) computer/u)
      .first()
      .waitFor();
  },
);

scene(
  "the status pill tells model, state and device, and opens another model",
  { scene: "bundledModel", pause: 1 },
  async (page) => {
    await page.getByRole("button", { name: "Model: SmolLM2-135M-Instruct, ready, CPU" }).click();
    const card = page.getByRole("dialog", { name: "Model" });
    await card.getByText("No GPU").waitFor();
    assert.match(
      await card.innerText(),
      /AVX-512 VNNI, 8 threads[\s\S]*No GPU was found by a Vulkan or Metal driver\./,
    );
    await card.getByRole("button", { name: "Open a model…" }).click();
    await page.getByText(/Loading \d+ %/).waitFor();
    await resume(page);
    await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
  },
);

scene("while a GPU is tried the pill and its card say so", { scene: "checking" }, async (page) => {
  await page.getByRole("button", { name: "Model: SmolLM3-Q4_K_M, testing the GPU" }).click();
  const card = page.getByRole("dialog", { name: "Model" });
  await card.getByText("measured against the CPU").waitFor();
});

scene(
  "a GPU that does not work is named with the reason, and its report can be copied",
  { scene: "rejected-gpu" },
  async (page) => {
    const pill = page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" });
    assert.match(await pill.getAttribute("data-tip"), /its driver crashes/);
    await pill.click();
    const card = page.getByRole("dialog", { name: "Model" });
    await card.getByText("Radeon 780M is not used: its driver crashes").waitFor();
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await card.getByRole("button", { name: "Copy report" }).click();
    await card.getByRole("button", { name: "Copied" }).waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /0000:65:00\.0/);
  },
);

scene(
  "the card names the chat format, and what is uncertain about it",
  { scene: "format" },
  async (page) => {
    await page.getByRole("button", { name: "Model: SmolLM2-1.7B, ready, CPU" }).click();
    const card = page.getByRole("dialog", { name: "Model" });
    await card.getByText("ChatML, chosen by the file's chat template").waitFor();
    await page.keyboard.press("Escape");
  },
);

scene(
  "a bad file's reason is on the screen until it is put aside",
  { scene: "error" },
  async (page) => {
    await page
      .getByRole("alert")
      .getByText(
        "is a Gemma 3 model. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files. You are still using SmolLM2-135M-Instruct.",
      )
      .waitFor();
    await page.getByRole("alert").getByRole("button", { name: "Dismiss" }).click();
    assert.equal(await page.getByRole("alert").count(), 0);
  },
);

scene(
  "a model over which the app ended is named with the reason, and can be tried again",
  { scene: "crashed" },
  async (page) => {
    const alert = page.getByRole("alert");
    await alert.getByText("was not opened: the app ended").waitFor();
    assert.equal(await alert.getByRole("button", { name: "Open another…" }).count(), 1);
    await alert.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("button", { name: "Model: SmolLM3-3B, ready, CPU" }).waitFor();
    assert.equal(await alert.count(), 0);
  },
);

scene("only a file that was never opened can be tried again", { scene: "error" }, async (page) => {
  const alert = page.getByRole("alert");
  await alert.waitFor();
  assert.equal(await alert.getByRole("button", { name: "Try again" }).count(), 0);
  await alert.getByRole("button", { name: "Open another…" }).click();
  assert.deepEqual(await calls(page, "pickModel", "retryModel"), [["pickModel"]]);
});

scene("the card has the model's facts, and opens the bundled model", {}, async (page) => {
  const card = page.getByRole("dialog", { name: "Model" });
  await page.getByRole("button", { name: /^Model:/ }).click();
  const facts = await card.locator("dl").innerText();
  assert.match(facts, /File\s+SmolLM3-Q4_K_M\.gguf/);
  assert.match(facts, /Quantisation\s+Q4_K_M/);
  assert.match(facts, /Size\s+1\.9 GB/);
  assert.match(facts, /Context\s+32,768 tokens \(up to 2\.4 GB of memory\)/);
  const tooltips = await card
    .locator("dd[data-tip]")
    .evaluateAll((all) => all.map((dd) => dd.dataset.tip));
  assert.deepEqual(tooltips, ["~/Models/SmolLM3-Q4_K_M.gguf"], "none repeats what is seen");
  await card.getByRole("button", { name: "Use SmolLM2-135M" }).click();
  await page.getByRole("button", { name: "Model: SmolLM2-135M-Instruct, ready, CPU" }).click();
  await card.getByText("Comes with Goldcrest").waitFor();
  assert.equal(await card.getByRole("button", { name: "Use SmolLM2-135M" }).count(), 0);
});

scene("the card checks the model, and says how far that is", {}, async (page) => {
  const card = page.getByRole("dialog", { name: "Model" });
  await page.getByRole("button", { name: /^Model:/ }).click();
  const check = card.getByRole("region", { name: "Check of this model" });
  await page.evaluate(() => (window.stage.modelCheck.stepMs = 60_000));
  await check.getByRole("button", { name: "Check this model" }).click();
  await check.getByText("candle, an independent program, loads the model.").waitFor();
  await page.evaluate(() => {
    const step = { state: "running", step: "exact", done: 12, total: 96 };
    window.stage.emit({ type: "modelCheck", check: step });
  });
  await check.getByText("12 of 96 tokens").waitFor();
  assert.equal(await check.getByRole("progressbar").getAttribute("value"), "12");
  await check.getByRole("button", { name: "Stop" }).click();
  assert.deepEqual(await calls(page, "checkModel", "stopModelCheck"), [
    ["checkModel", null],
    ["stopModelCheck"],
  ]);
  const end = (check) =>
    page.evaluate((check) => window.stage.emit({ type: "modelCheck", check }), check);
  await end({ state: "stopped" });
  await check.getByRole("button", { name: "Check this model" }).waitFor();
  const distance = { relativeError: 0.0241, meanKl: 0.0003, top1: 0.9896 };
  const report = {
    verdict: "agree",
    deviceName: "CPU",
    tokens: 96,
    engine: distance,
    candle: { ...distance, relativeError: null },
  };
  await end({ state: "done", report });
  await check.getByText("Checked: Goldcrest and candle agree.").waitFor();
  const rows = await check.getByRole("row").allInnerTexts();
  assert.deepEqual(
    rows.slice(1).map((row) => row.split(/\t/u).map((cell) => cell.trim())),
    [
      ["Goldcrest", "2.41 %", "98.96 %"],
      ["candle", "not a number", "98.96 %"],
    ],
  );
  await end({ state: "done", report: { ...report, verdict: "damaged" } });
  await check.getByText("The weights in this file are damaged.").waitFor();
  await end({ state: "failed", message: "There is no memory for this." });
  await check.getByText("There is no memory for this.").waitFor();
  await check.getByRole("button", { name: "Check this model" }).waitFor();
});

for (const [name, call] of [
  ["Open a model…", "pickModel"],
  ["Use SmolLM2-135M", "useBundledModel"],
])
  scene(`without a model the first screen offers: ${name}`, { scene: "none" }, async (page) => {
    await page.getByText("Get SmolLM3-3B, open a file of it, or use the small model").waitFor();
    await button(page, name).click();
    assert.deepEqual(await calls(page, "pickModel", "useBundledModel"), [[call]]);
  });

scene(
  "a model that could not be opened is named on the first screen",
  { scene: "none" },
  async (page) => {
    await page.evaluate(() => {
      const error = { code: "bad-model", message: "picked.gguf ends early." };
      window.stage.emit({ type: "model", model: { status: { state: "none" }, error } });
    });
    await page.getByRole("paragraph").getByText("picked.gguf ends early.").nth(1).waitFor();
    assert.equal(await page.getByText("or use the small model that comes").count(), 0);
  },
);

scene("a full disk is said until there is room, and nothing typed is lost", {}, async (page) => {
  await page.evaluate(() => (window.stage.full = true));
  await ask(page, "Not to be lost");
  const alert = page.getByRole("alert");
  await alert.getByText("The disk is full").waitFor();
  assert.equal(await message(page).inputValue(), "Not to be lost");
  await page.evaluate(() => (window.stage.full = false));
  await alert.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("log").getByText("Not to be lost").waitFor();
});

for (const event of ["beforeunload", "pagehide"])
  scene(`what was just typed is saved at ${event}`, {}, async (page) => {
    await message(page).fill("Half a sen");
    await page.evaluate((event) => window.dispatchEvent(new Event(event)), event);
    assert.deepEqual(await calls(page, "saveDraft"), [["saveDraft", null, "Half a sen"]]);
  });

scene("a file over the window is welcomed", {}, async (page) => {
  const hover = (over) =>
    page.evaluate((over) => window.stage.emit({ type: "dragging", over }), over);
  await hover(true);
  await page.getByText("Drop a SmolLM3 file to open it").waitFor();
  await hover(false);
  await page.getByText("Drop a SmolLM3 file").waitFor({ state: "detached" });
});

/** Texts on the page with a WCAG contrast below `least`. */
function faint(page, least) {
  return page.evaluate((least) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.canvas.width = canvas.canvas.height = 1;
    // Blends colours, bottom layer first.
    const mix = (colours) => {
      canvas.clearRect(0, 0, 1, 1);
      for (const colour of colours) {
        canvas.fillStyle = colour;
        canvas.fillRect(0, 0, 1, 1);
      }
      return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (colour) => {
      const [r, g, b] = colour.map((part) => {
        const value = part / 255;
        return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement;
      const text = texts.currentNode.textContent.trim();
      if (
        text === "" ||
        element.closest(".unseen, :disabled, math") ||
        !element.checkVisibility({ opacityProperty: true })
      )
        continue;
      const behind = [];
      for (let at = element; at; at = at.parentElement)
        behind.unshift(getComputedStyle(at).backgroundColor);
      const ground = light(mix(behind));
      const ink = light(mix([...behind, getComputedStyle(element).color]));
      const contrast = (Math.max(ground, ink) + 0.05) / (Math.min(ground, ink) + 0.05);
      if (contrast < least) found.push(`${contrast.toFixed(2)} ${text.slice(0, 40)}`);
    }
    return found;
  }, least);
}

for (const colorScheme of ["light", "dark"]) {
  scene(
    `text can be read (AA) in ${colorScheme}`,
    { rate: 20_000, colorScheme, height: 2000 },
    async (page) => {
      await ask(page, "How does compound interest work? With a table");
      await answered(page);
      await page.getByRole("button", { name: /Thought/ }).click();
      await page.getByRole("button", { name: /tokens\/s/ }).click();
      assert.deepEqual(await faint(page, 4.5), []);
      await page.keyboard.press("Control+,");
      for (const name of settingsPages) {
        await page.getByRole("tab", { name }).click();
        assert.deepEqual(await faint(page, 4.5), [], name);
      }
    },
  );

  for (const name of ["found", "download-failed"])
    scene(
      `the models page can be read (AA) in ${colorScheme}: ${name}`,
      { scene: name, colorScheme, height: 2000 },
      async (page) => {
        await page.getByRole("region", { name: "Get a model" }).waitFor();
        assert.deepEqual(await faint(page, 4.5), []);
        await page.keyboard.press("Control+Shift+M");
        await page.getByRole("dialog", { name: "Models" }).waitFor();
        await page.waitForTimeout(300);
        assert.deepEqual(await faint(page, 4.5), []);
      },
    );

  scene(
    `answers can be read with ease (AAA) in ${colorScheme}`,
    { rate: 20_000, colorScheme, height: 2000 },
    async (page) => {
      await ask(page, "Tell me a story");
      await answered(page);
      await page.evaluate(() => {
        const answer = document.querySelector(".answer");
        document.body.replaceChildren(answer);
      });
      assert.deepEqual(await faint(page, 7), []);
    },
  );
}

scene("who wants no motion sees none", { pause: 6, reducedMotion: "reduce" }, async (page) => {
  await ask(page, "Tell me a story");
  await page.getByText("Thinking…").waitFor();
  assert.equal(
    await page.evaluate(
      () => document.getAnimations().filter((a) => a.playState === "running").length,
    ),
    0,
  );
});

/** Descendants that overflow the element or the window. */
const cutOff = (element) =>
  element.evaluate((element) => {
    const { left, right } = element.getBoundingClientRect();
    return [...element.querySelectorAll("*")]
      .filter((each) => {
        const box = each.getBoundingClientRect();
        return (
          box.width > 0 && (box.left < left - 1 || box.right > Math.min(right, innerWidth) + 1)
        );
      })
      .map((each) => each.outerHTML.slice(0, 80));
  });

for (const [name, width, height] of [
  ["the smallest window", 420, 400],
  ["a window at 200 % zoom", 550, 400],
  ["the smallest window at 200 % zoom", 210, 200],
]) {
  scene(`${name} has everything within reach`, { width, height, rate: 20_000 }, async (page) => {
    await ask(page, "How does compound interest work? With a table");
    await answered(page);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.equal(wide, 0);
    for (const part of [page.locator("main header"), page.locator("form")])
      assert.deepEqual(await cutOff(part), []);
    for (const role of ["Send", "Thinking", "New chat"]) {
      const box = await button(page, role).boundingBox();
      assert(box && box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height, role);
    }
  });
}

scene("the settings fit a narrow window", { width: 420 }, async (page) => {
  await page.keyboard.press("Control+,");
  for (const name of settingsPages) {
    await page.getByRole("tab", { name }).click();
    assert.deepEqual(await cutOff(page.getByRole("dialog")), [], name);
    const panel = await page.getByRole("tabpanel").boundingBox();
    assert(panel.width > 300, `${panel.width} px for ${name}`);
  }
});

scene(
  "a fault's text and buttons fit a narrow window",
  { scene: "crashed", width: 420 },
  async (page) => {
    const alert = page.getByRole("alert");
    assert.deepEqual(await cutOff(alert), []);
    assert((await alert.getByRole("paragraph").boundingBox()).width > 250);
  },
);

scene(
  "in a narrow window the sidebar opens over the chat, and closes with a choice",
  { width: 420 },
  async (page) => {
    const sidebar = page.getByRole("complementary", { name: "Sidebar" });
    await sidebar.waitFor({ state: "detached" });
    const box = await message(page).boundingBox();
    await button(page, "Show sidebar").click();
    await sidebar.getByText("Sourdough").waitFor();
    assert.equal((await message(page).boundingBox()).width, box.width, "the chat keeps its width");
    await sidebar.getByText("Sourdough").click();
    await sidebar.waitFor({ state: "detached" });
    await button(page, "Show sidebar").click();
    await sidebar.getByRole("button", { name: "New chat" }).click();
    await sidebar.waitFor({ state: "detached" });
  },
);

scene(
  "at twice the size, the message box is in sight before anything is written",
  { scene: "first", width: 550, height: 380 },
  async (page) => {
    const { y, height } = await page.getByRole("form", { name: "Composer" }).boundingBox();
    assert(y + height <= 380, `${y} and ${height}`);
  },
);

for (const forced of ["active", "none"])
  scene(
    `what is chosen can be seen, with forced colours ${forced}`,
    { forcedColors: forced, contrast: "more" },
    async (page) => {
      const chosen = button(page, "Thinking");
      const { width, style } = await chosen.evaluate((it) => {
        const { outlineWidth: width, outlineStyle: style } = getComputedStyle(it);
        return { width, style };
      });
      assert.equal(style === "none" ? "" : width, forced === "active" ? "2px" : "");
    },
  );
