import hljs from "highlight.js/lib/common";
import { expect, test } from "vitest";
import { isKnownLanguage, languageName } from "./languages";

test("a language is called by its name", () => {
  expect(languageName("ts")).toBe("TypeScript");
  expect(languageName("html")).toBe("HTML");
  expect(languageName("")).toBe("Text");
  expect(languageName("nonsense")).toBe("nonsense");
});

test("every language of the highlighter is known by all its names, and no other", () => {
  for (const name of hljs.listLanguages()) {
    const language = hljs.getLanguage(name);
    for (const known of [name, ...(language?.aliases ?? [])]) {
      expect(isKnownLanguage(known)).toBe(true);
      expect(languageName(known)).toBe(language?.name?.split(",")[0]);
    }
  }
  expect(isKnownLanguage("nonsense")).toBe(false);
  expect(isKnownLanguage("constructor")).toBe(false);
});
