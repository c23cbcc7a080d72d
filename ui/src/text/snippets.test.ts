import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { md } from "./markdown";
import { withoutFormulas } from "./snippets";

const folder = new URL("./snippets/", import.meta.url);

/** Typical Markdown of models, and its HTML. */
describe.each(readdirSync(folder))("%s", (file) => {
  const snippets = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as [string, string][];

  test.each(snippets)("%j", (markdown, html) => {
    expect(withoutFormulas(md.render(markdown, {}))).toBe(html);
  });
});
