import { expect, test } from "vitest";
import { CodeReader, highlight, languageName } from "./code";

test("a language is called by its name", () => {
  expect(languageName("ts")).toBe("TypeScript");
  expect(languageName("")).toBe("Text");
  expect(languageName("nonsense")).toBe("nonsense");
});

test("code without colours is still escaped", () => {
  expect(highlight('<a href="x">&', "nonsense")).toBe("&lt;a href=&quot;x&quot;&gt;&amp;");
});

test("growing code keeps its finished pieces, and closed code is done as a whole", () => {
  const lines = Array.from({ length: 100 }, (_, at) => `let a${at} = "${at}";`);
  const reader = new CodeReader();
  const before = reader.read(lines.slice(0, 90).join("\n"), "js", true);
  const after = reader.read(lines.join("\n"), "js", true);
  expect(before).toHaveLength(3);
  expect(after.slice(0, 2)).toEqual(before.slice(0, 2));
  expect(after.join("")).toBe(highlight(lines.join("\n"), "js"));
  expect(reader.read(lines.join("\n"), "js", false)).toEqual([highlight(lines.join("\n"), "js")]);
});
