import { expect, test } from "vitest";
import { indented, isObject, oneLine, parsed, tableOf } from "./json";

test("short JSON stays on one line, and what is longer is indented", () => {
  expect(indented('{ "a":1 ,"b":[ true,null ]}')).toBe('{"a": 1, "b": [true, null]}');
  const long = { names: Array.from({ length: 4 }, () => "x".repeat(30)), empty: {} };
  expect(indented(JSON.stringify(long))).toBe(JSON.stringify(long, null, 2));
});

test("strings and numbers stay as they were written", () => {
  const json = '{"id": 12345678901234567890, "rate": 1.50, "text": "a, {b}: \\u202e \\"c\\""}';
  expect(indented(json)).toBe(json);
});

test("deep JSON is indented in time", () => {
  const deep = "[".repeat(2000) + "]".repeat(2000);
  const start = performance.now();
  expect(indented(deep).split("\n").length).toBeGreaterThan(1000);
  expect(performance.now() - start).toBeLessThan(1000);
});

test.each([
  ['{"expression": "12 * 3"}', "12 * 3"],
  ['{"query": "a\\n b", "limit": 3}', "query: a b, limit: 3"],
  ["{}", ""],
  ['{"a": [1]}', null],
])("the values of %s are in one line", (json, line) => {
  const value = parsed(json);
  expect(isObject(value) && oneLine(value)).toBe(line);
});

test("a list of flat objects is a table with all columns", () => {
  const json = '[{"a": 1, "b": "x"}, {"a": 2.5, "c": null}]';
  expect(tableOf(json, parsed(json))).toEqual({
    columns: ["a", "b", "c"],
    rows: [
      ["1", "x", ""],
      ["2.5", "", ""],
    ],
    numeric: [true, false, false],
  });
});

test.each([
  "[]",
  "[1, 2]",
  "[{}]",
  '[{"a": {"b": 1}}]',
  '{"a": 1}',
  '[{"id": 12345678901234567890}]',
])("%s is no table", (json) => {
  expect(tableOf(json, parsed(json))).toBeNull();
});
