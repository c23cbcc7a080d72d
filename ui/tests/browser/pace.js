// npm run bench:ui: how smoothly the window draws a long answer, and how fast it opens a long chat, in Chromium.
import { ask, Stand } from "./window.js";

/** The value below which this share of the numbers lies. */
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

/** Milliseconds from one frame to the next, from now on, in `window.frames_ms`. */
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

async function longChat(stand) {
  const page = await stand.page({ scene: "long" });
  const list = page.getByRole("list", { name: "Chats", exact: true });
  await list.getByText("How does compound interest work?").waitFor();
  return page.evaluate(async () => {
    const started = performance.now();
    document.querySelector("[aria-label=Chats] li .open").click();
    const untilDrawn = async (messages) => {
      while (document.querySelectorAll("[data-message]").length < messages)
        await new Promise((resolve) => setTimeout(resolve, 0));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      return Math.round(performance.now() - started);
    };
    return { messages: 120, endShownMs: await untilDrawn(2), wholeMs: await untilDrawn(120) };
  });
}

const stand = await Stand.open();
try {
  const [tokens = 10_000, rate = 500] = process.argv.slice(2).map(Number);
  console.log(JSON.stringify({ answer: await longAnswer(stand, tokens, rate) }, null, 2));
  console.log(JSON.stringify({ chat: await longChat(stand) }, null, 2));
} finally {
  await stand.close();
}
