// Answers as a model writes them that repeats itself, and how long the page stands still over them.

const long = (text, length) => text.repeat(Math.ceil(length / text.length)).slice(0, length);

const MEGABYTE = 1_000_000;

/** What the answers hold; a name, and the text. */
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

/** The fences of 200 KB: in ordinary code, and in what the grammar is slowest at. */
export const fences = {
  "markdown [a](": "```markdown\n" + long("[a](", 200_000),
  "java $a": "```java\n" + long("$a", 200_000),
  "php A9": "```php\n" + long("A9", 200_000),
  "ini _": "```ini\n" + long("_", 200_000),
  "typescript __a": "```typescript\n" + long("__a", 200_000),
  "javascript `": "```js\n" + long("`", 200_000),
  "xml <a ": "```xml\n" + long("<a ", 200_000),
  "python lines":
    "```python\n" + long("def f(x):\n    return [x + 1, 'two', 3.0]  # four\n\n", 200_000),
};

/** Begins to gather the page's long tasks, in milliseconds, in `window.stalls`. */
export function watchStalls(page) {
  return page.evaluate(() => {
    window.stalls = [];
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.stalls.push(Math.round(duration));
    }).observe({ type: "longtask" });
  });
}

/** The tasks of more than 50 ms since the last call: the longest and their sum. */
export async function stalls(page) {
  const all = await page.evaluate(() => window.stalls.splice(0));
  return { longest: Math.max(0, ...all), sum: all.reduce((sum, each) => sum + each, 0), all };
}
