// Chats of hundreds and thousands of messages: their cost, and that every message can be reached.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { pageTasks } from "./responsive.js";
import { ask, button, chats, log, message, soon, Stand } from "./window.js";

let stand;
before(async () => (stand = await Stand.open()));
after(() => stand.close());

/** Limit for a key, in milliseconds of processor time: one frame at 60 Hz. */
const KEY_MS = 16;
/** Limit for a single key, since a busy machine may stall for a moment. */
const LONGEST_KEY_MS = 50;
const KEYS = 20;

const LONG = "How does compound interest work?";

/** Opens the newest chat, with this many messages. */
async function open(messages, view) {
  const page = await stand.page({ messages, ...view });
  await chats(page).getByText(LONG).click();
  await log(page).getByRole("article").last().waitFor();
  return page;
}

async function close(page) {
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

/** Numbers of the rendered messages. */
const drawn = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("[role=log] article")].map((each) => Number(each.ariaPosInSet)),
  );

/** Number of the first message in the viewport. */
const inView = (page) =>
  page.evaluate(() => {
    const { top } = document.querySelector("[role=log]").getBoundingClientRect();
    const all = [...document.querySelectorAll("[role=log] article")];
    const first = all.find((each) => each.getBoundingClientRect().bottom > top + 1);
    return Number(first?.ariaPosInSet);
  });

/** Scrolls as a user would: without an input event, the scroll would be attributed to WebKit. */
const scrollTo = (page, share) =>
  page.evaluate((share) => {
    const log = document.querySelector("[role=log]");
    log.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
    log.scrollTop = share * (log.scrollHeight - log.clientHeight);
  }, share);

for (const messages of [500, 10_000])
  test(`a key in the message box is not felt in a chat of ${messages} messages`, async (t) => {
    const page = await open(messages);
    await page.waitForTimeout(1000);
    const { length } = await drawn(page);
    assert(length > 1 && length < 60, `${length} messages are drawn`);
    await message(page).focus();
    const { sum, longest } = await pageTasks(stand, page, async () => {
      for (let key = 0; key < KEYS; key++) await page.keyboard.press("a");
      await page.waitForTimeout(500);
    });
    t.diagnostic(`${sum / KEYS} ms a key, ${longest} ms the longest task`);
    assert(sum / KEYS < KEY_MS, `${sum / KEYS} ms a key`);
    assert(longest < LONGEST_KEY_MS, `${longest} ms a single one`);
    await close(page);
  });

test("a key gives the message box its height at once, and never takes it back to measure", async () => {
  const page = await open(500);
  await message(page).fill("one");
  await page.evaluate(() => {
    const area = document.querySelector("textarea[aria-label=Message]");
    window.heights = [];
    new MutationObserver(() => window.heights.push(area.style.height)).observe(area, {
      attributeFilter: ["style"],
    });
  });
  await message(page).press("End");
  for (let key = 0; key < KEYS; key++) await page.keyboard.press("a");
  assert.deepEqual(await page.evaluate(() => window.heights), []);
  await page.keyboard.press("Shift+Enter");
  assert.equal((await page.evaluate(() => window.heights)).length, 1);
  await close(page);
});

test("every place of a long chat can be scrolled to, and stays where it is", async () => {
  const page = await open(10_000);
  const articles = log(page).getByRole("article");
  assert.equal(await articles.last().getAttribute("aria-posinset"), "10000");
  assert.equal(await articles.last().getAttribute("aria-setsize"), "10000");
  for (const share of [0, 0.5, 0.25, 1]) {
    await scrollTo(page, share);
    const expected = Math.max(1, share * 10_000);
    await soon(async () => {
      const first = await inView(page);
      assert(Math.abs(first - expected) < 400, `${first} at ${share}`);
    });
    await page.waitForTimeout(300);
    const before = await inView(page);
    await page.waitForTimeout(500);
    assert.equal(await inView(page), before, `nothing moves at ${share}`);
    assert((await drawn(page)).length < 60);
  }
  await close(page);
});

test("what is read stays in place while what is above it is drawn", async () => {
  const page = await open(500);
  await scrollTo(page, 0.5);
  await page.waitForTimeout(500);
  const box = await log(page).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  for (let turn = 0; turn < 12; turn++) {
    const number = await inView(page);
    const top = () =>
      page.evaluate(
        (number) =>
          document
            .querySelector(`[role=log] article[aria-posinset="${number}"]`)
            .getBoundingClientRect().top,
        number,
      );
    const before = await top();
    await page.mouse.wheel(0, -200);
    await soon(async () =>
      assert(
        Math.abs((await top()) - before - 200) <= 2,
        `message ${number} went from ${before} to ${await top()}`,
      ),
    );
  }
  await close(page);
});

test("a chat is found again where it was left", async () => {
  const page = await open(500);
  await scrollTo(page, 0.4);
  await page.waitForTimeout(500);
  const before = await inView(page);
  await chats(page).getByText("A story about a small bird").click();
  await log(page).getByText("The goldcrest weighs").waitFor();
  await chats(page).getByText(LONG).click();
  await soon(async () => assert.equal(await inView(page), before));
  await page.getByRole("button", { name: "Latest" }).click();
  await soon(async () => assert((await inView(page)) > 495));
  await chats(page).getByText("A story about a small bird").click();
  await log(page).getByText("The goldcrest weighs").waitFor();
  await chats(page).getByText(LONG).click();
  await soon(async () => assert((await inView(page)) > 495, "at its end, as it was left"));
  await close(page);
});

test("a chat that was left near its end is found there, not at its end", async () => {
  const page = await stand.page({ messages: 200 });
  // Their lines are short, so their height is underestimated.
  await page.evaluate(() => {
    const [chat] = [...window.stage.library.chats.values()].slice(-1);
    const answers = chat.messages.slice(-8, -2).filter(({ role }) => role === "assistant");
    const text = `\`\`\`\n${"one\n".repeat(60)}\`\`\``;
    for (const each of answers) each.parts = [{ kind: "text", text }];
  });
  await chats(page).getByText(LONG).click();
  await log(page).getByRole("article").last().waitFor();
  await page.waitForTimeout(500);
  for (let turn = 0; turn < 3; turn++) {
    await page.evaluate(() => {
      const log = document.querySelector("[role=log]");
      log.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
      log.querySelector("[aria-posinset='195']")?.scrollIntoView();
    });
    await page.waitForTimeout(300);
  }
  const offset = () =>
    page.evaluate(() => {
      const each = document.querySelector("[role=log] [aria-posinset='195']");
      return Math.round(each?.getBoundingClientRect().top ?? -1);
    });
  const before = await offset();
  assert.equal(await inView(page), 195);
  await chats(page).getByText("A story about a small bird").click();
  await log(page).getByText("The goldcrest weighs").waitFor();
  await chats(page).getByText(LONG).click();
  await log(page).getByRole("article").last().waitFor();
  await page.waitForTimeout(500);
  assert.equal(await offset(), before);
  await close(page);
});

test("what was unfolded, focused or selected far from the view is there again", async () => {
  const page = await open(500);
  await scrollTo(page, 0.5);
  await page.waitForTimeout(500);
  const number = (await inView(page)) | 1;
  const answer = page.locator(`[role=log] article[aria-posinset="${number + 1}"]`);
  await answer.getByRole("button", { name: /Thought/ }).click();
  await answer.getByText("Start with the formula").waitFor();
  const focused = answer.getByRole("button", { name: "Copy answer" });
  await focused.focus();
  await scrollTo(page, 1);
  await page.waitForTimeout(500);
  assert(await focused.evaluate((each) => each === document.activeElement), "it has the focus");
  await message(page).focus();
  await soon(async () => assert.equal(await answer.count(), 0));
  await scrollTo(page, number / 500);
  await answer.getByText("Start with the formula").waitFor();
  await close(page);
});

test("a question whose answer fails at once stands at the top all the same", async () => {
  const page = await open(20);
  await page.evaluate(() => {
    const { stage } = window;
    const send = stage.send.bind(stage);
    // The answer has failed before its chat is shown.
    stage.send = async (...message) => {
      const view = await send(...message);
      await stage.stop(view.chat.id);
      return stage.openChat(view.chat.id);
    };
  });
  await ask(page, "What is Goldcrest?");
  const question = log(page).getByText("What is Goldcrest?");
  const frame = await log(page).boundingBox();
  await soon(async () => {
    const { y } = await question.boundingBox();
    assert(y - frame.y < 60, `${y - frame.y} px below the top`);
  });
  assert.equal(await page.getByRole("button", { name: "Latest" }).count(), 0);
  await close(page);
});

test("“Latest” is offered only where something is below", async () => {
  const page = await stand.page({ rate: 4000 });
  await ask(page, "What is Goldcrest?");
  await button(page, "Regenerate").waitFor();
  const latest = page.getByRole("button", { name: "Latest" });
  await page.getByRole("button", { name: /Thought/ }).click();
  await log(page).getByText("They ask about the app itself.").waitFor();
  await page.waitForTimeout(300);
  assert.equal(await latest.count(), 0);
  await page.getByRole("button", { name: /tokens\/s/ }).click();
  await page.waitForTimeout(300);
  assert.equal(await latest.count(), 0, "there is room for the details");
  await page.setViewportSize({ width: 1100, height: 420 });
  await log(page).hover();
  await page.mouse.wheel(0, -400);
  await latest.waitFor();
  await close(page);
});
