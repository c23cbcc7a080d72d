import { expect, test } from "vitest";
import { argumentsOf, harmless, harmlessName, resultOf, summaryOf } from "./tool-texts";

test("control characters are shown harmless", () => {
  expect(harmless("a\u202Eb\r\nc\td\u001B[31m\0")).toBe("ab\nc\td\uFFFD[31m\uFFFD");
  expect(harmlessName(" Cal\u2066culator\n ")).toBe("Calculator");
});

test("a program is shown as code", () => {
  const given = JSON.stringify({ code: "\nimport math\nprint(1)" });
  expect(argumentsOf("run_python", given)).toEqual({
    language: "python",
    text: "\nimport math\nprint(1)",
  });
  expect(summaryOf("run_python", given)).toBe("import math");
});

test("further arguments of a program are not hidden", () => {
  const given = '{"code": "print(1)", "seconds": 9}';
  expect(argumentsOf("run_python", given)).toEqual({ language: null, text: given });
});

test("arguments that are no JSON are shown as they are", () => {
  expect(argumentsOf("weigh", '{"bird": ')).toEqual({ language: null, text: '{"bird": ' });
  expect(summaryOf("weigh", '{"bird": ')).toBe('{"bird":');
});

test("a result is a table, JSON or plain text", () => {
  expect(resultOf('[{"a": "x\u202Ey"}]')).toMatchObject({ kind: "table", rows: [["xy"]] });
  expect(resultOf('{"a":[1]}')).toEqual({ kind: "text", text: '{"a": [1]}' });
  expect(resultOf("**36** <b>g</b>")).toEqual({ kind: "text", text: "**36** <b>g</b>" });
  expect(resultOf('"quoted"')).toEqual({ kind: "text", text: '"quoted"' });
});
