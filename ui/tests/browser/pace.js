// npm run bench:ui: frame times while a long answer is streamed, the time to open a long chat, and
// the cost of a key there, in Chromium.
import { pageTasks } from "./responsive.js";
import { ask, chats, message, Stand } from "./window.js";

/** Quantile of the numbers. */
const quantile = (numbers, share) =>
  [...numbers].sort((a, b) => a - b)[Math.floor((numbers.length - 1) * share)];
const rounded = (number) => Math.round(number * 10) / 10;

async function measures(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
  };
}

/** Records the time between frames in `window.frames_ms`, in milliseconds. */
function watchFrames(page) {
  return page.evaluate(() => {
    window.frames_ms = [];
    let last = performance.now();
    const frame = (now) => {
      window.frames_ms.push(now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
}

async function longAnswer(stand, tokens, rate) {
  const page = await stand.page({ rate, reading: 0 });
  await page.getByRole("button", { name: "Thinking", exact: true }).click();
  const read = await measures(page);
  await watchFrames(page);
  const before = await read();
  await ask(page, `A long answer of ${tokens} tokens`);
  await page.getByRole("button", { name: "Send" }).waitFor({ timeout: (tokens / rate) * 2000 });
  const after = await read();
  const frames = await page.evaluate(() => window.frames_ms);
  const spent = (name) => rounded((after[name] - before[name]) * 1000);
  return {
    tokens,
    tokensPerSecond: rate,
    frameMs: { median: rounded(quantile(frames, 0.5)), p95: rounded(quantile(frames, 0.95)) },
    lastQuarterP95: rounded(quantile(frames.slice(-frames.length / 4), 0.95)),
    scriptMs: spent("ScriptDuration"),
    styleMs: spent("RecalcStyleDuration"),
    layoutMs: spent("LayoutDuration"),
  };
}

/**
 * Opens a chat of this length and types in it. Returns milliseconds; for a key, of processor time.
 */
async function longChat(stand, messages) {
  const page = await stand.page({ messages });
  await chats(page).getByText("How does compound interest work?").waitFor();
  const openedMs = await page.evaluate(async () => {
    const started = performance.now();
    document.querySelector("[aria-label=Chats] li .open").click();
    while (!document.querySelector("[data-message]"))
      await new Promise((resolve) => setTimeout(resolve, 0));
    await new Promise((resolve) => requestAnimationFrame(resolve));
    return Math.round(performance.now() - started);
  });
  const settled = async () => {
    const count = () => page.evaluate(() => document.querySelectorAll("*").length);
    for (let before = -1, now = await count(); now !== before; now = await count()) {
      before = now;
      await page.waitForTimeout(1000);
    }
    return page.evaluate(() => document.querySelectorAll("*").length);
  };
  const elements = await settled();
  await message(page).focus();
  const KEYS = 20;
  const { sum } = await pageTasks(stand, page, async () => {
    for (let key = 0; key < KEYS; key++) {
      await page.keyboard.press("a");
      await page.waitForTimeout(50);
    }
  });
  await page.context().close();
  return { messages, openedMs, elements, keyMs: rounded(sum / KEYS) };
}

const stand = await Stand.open();
try {
  const [tokens = 10_000, rate = 500] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify({ answer: await longAnswer(stand, tokens, rate) }, null, 2));
  for (const messages of [2, 100, 500, 10_000])
    console.log(JSON.stringify({ chat: await longChat(stand, messages) }, null, 2));
} finally {
  await stand.close();
}
