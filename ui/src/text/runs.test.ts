import hljs from "highlight.js/lib/common";
import { expect, test } from "vitest";
import { cutRuns, runsOf } from "./runs";

const code = `const a = \`\${b + "<&>'"}\`; // it's & that's <all>
function f() {
  return /x"/u;
}
`;
const runs = runsOf(hljs.highlight(code, { language: "ts" }).value);
const textOf = (some: typeof runs): string => some.map(([, text]) => text).join("");

test("the runs hold every letter of the code, with the classes of highlight.js", () => {
  expect(textOf(runs)).toBe(code);
  expect(runs).toContainEqual(["hljs-keyword", "const"]);
  expect(runs).toContainEqual(["hljs-comment", "// it's & that's <all>"]);
});

test("what is interpolated in a string is not coloured as the string", () => {
  expect(runs).toContainEqual(["", "${b + "]);
  expect(runs).toContainEqual(["hljs-string", `"<&>'"`]);
});

test("runs are cut where the pieces end, even within one", () => {
  const lengths = [3, 2, code.length - 12, 7];
  const cut = cutRuns(runs, lengths);
  expect(cut.map((piece) => textOf(piece).length)).toEqual(lengths);
  expect(cut.map(textOf).join("")).toBe(code);
  expect(cut.slice(0, 2)).toEqual([[["hljs-keyword", "con"]], [["hljs-keyword", "st"]]]);
});
