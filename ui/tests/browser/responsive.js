// Repetitive answers, as a model in a loop writes them, and the time for which they block the page.
import { test } from "node:test";

const long = (text, length) => text.repeat(Math.ceil(length / text.length)).slice(0, length);

const MEGABYTE = 1_000_000;

/** Texts of the answers, by name. */
export const floods = {
  word: long("goldcrest ", MEGABYTE),
  letter: long("a", MEGABYTE),
  "empty line": long("\n", MEGABYTE),
  "list item": long("- an item\n", MEGABYTE),
  "table row": `| a | b |\n|---|---|\n${long("| one | two |\n", MEGABYTE)}`,
  bracket: long("[a](", MEGABYTE),
  "formula mark": long("\\(", MEGABYTE),
  formula: long("$x$ ", MEGABYTE),
};

/** Fences of 200 KB: ordinary code, and the slowest input for each grammar. */
export const fences = {
  "markdown [a](": "```markdown\n" + long("[a](", 200_000),
  "java $a": "```java\n" + long("$a", 200_000),
  "php A9": "```php\n" + long("A9", 200_000),
  "ini _": "```ini\n" + long("_", 200_000),
  "typescript __a": "```typescript\n" + long("__a", 200_000),
  "javascript `": "```js\n" + long("a`", 200_000),
  "xml <a ": "```xml\n" + long("<a ", 200_000),
  "python lines":
    "```python\n" + long("def f(x):\n    return [x + 1, 'two', 3.0]  # four\n\n", 200_000),
};

/**
 * Measures tasks of the page's main thread while `act` runs: the processor time of the longest and
 * of all, in milliseconds. Unlike elapsed time, it does not depend on other load.
 */
export async function pageTasks(stand, page, act) {
  await stand.browser.startTracing(page, { categories: ["toplevel", "__metadata"] });
  let trace;
  try {
    await act();
  } finally {
    trace = JSON.parse((await stand.browser.stopTracing()).toString());
  }
  const events = trace.traceEvents;
  const threads = new Set(
    events
      .filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain")
      .map((event) => `${event.pid} ${event.tid}`),
  );
  const costs = events
    .filter((event) => /RunTask$/.test(event.name) && threads.has(`${event.pid} ${event.tid}`))
    .map((event) => (event.tdur ?? 0) / 1000);
  return {
    count: costs.length,
    longest: Math.round(Math.max(0, ...costs)),
    sum: Math.round(costs.reduce((sum, each) => sum + each, 0)),
  };
}

/** Waits until the answer is complete, without reading its content. */
export function answeredLong(page) {
  return page.waitForFunction(
    () => document.querySelector(".answer") && !document.querySelector("[aria-label=Stop]"),
    undefined,
    { polling: 100, timeout: 120_000 },
  );
}

/**
 * Registers a test of processor time, which is retried once: time stolen from a virtual machine
 * counts as used.
 */
export function timed(stand, name, run) {
  test(name, async (t) => {
    try {
      await run(t);
    } catch (error) {
      t.diagnostic(`once more: ${error.message}`);
      const open = stand().browser.contexts();
      await Promise.all(open.map((context) => context.close()));
      await run(t);
    }
  });
}
