import { describe, expect, it } from "vitest";
import { matches, places, terms } from "./query";

it("reads words, and phrases in quotes", () => {
  expect(terms('fizz "in rust" - py')).toEqual([
    { text: "fizz", quoted: false },
    { text: "in rust", quoted: true },
    { text: "-", quoted: false },
    { text: "py", quoted: false },
  ]);
  expect(terms('"half a phr')).toEqual([{ text: "half a phr", quoted: true }]);
  expect(terms(' "" \u200B ')).toEqual([]);
});

describe("the places of words", () => {
  const found = (text: string, query: string): string[] =>
    places(text, terms(query)).map(([from, to]) => text.slice(from, to));

  it.each([
    ["Of the Planets", "lanet", ["lanet"]],
    ["planet, planets", "PLANET", ["planet", "planet"]],
    ["Python and fizzbuzz", "fizzbuz python", ["Python", "fizzbuz"]],
    ["Wintergoldhähnchen", "goldhahn", ["goldhähn"]],
    ["l’été à Besançon", "ete besancon", ["été", "Besançon"]],
    ["e\u0301te\u0301 ici", "ete", ["e\u0301te\u0301"]],
    ["😀 fünf 😀 fünf", "funf", ["fünf", "fünf"]],
    ["the borrow, checker", '"borrow checker"', ["borrow, checker"]],
    ["Morrow borrow", '"orrow"', []],
    ["an apple and a plan", "a", ["a", "a", "a", "a"]],
    ["use C++ here", "c++", ["C++"]],
    ["use C, or C# here", "c#", ["C", "C#"]],
    ["an 🦅 and 2 * 3", "🦅 *", ["🦅", "*"]],
    ["foo_bar_baz", "bar_baz", ["bar_baz"]],
    ["(a) [b] a-b", "[b]", ["[b]", "b"]],
    ["a-b", "-", ["-"]],
    ["他的身份证", "身份", ["身份"]],
    ["身体和份", "身份", []],
    ["검색을 한다", "검색", ["검색"]],
    ["中a, ba", "a", ["a"]],
    ["in der Straße, STRASSE", "strasse", ["Straße", "STRASSE"]],
    ["ｆｕｌｌ width", "full", ["ｆｕｌｌ"]],
    [
      "soft\u00ADhyphen and zero\u200Bwidth",
      "softhyphen zerowidth",
      ["soft\u00ADhyphen", "zero\u200Bwidth"],
    ],
    ["", "a", []],
    ["text", "", []],
  ])("%j has %j at %j", (text, query, expected) => expect(found(text, query)).toEqual(expected));
});

it("asks for all terms, in any order", () => {
  expect(matches("Python and fizzbuzz", terms("fizzbuz python"))).toBe(true);
  expect(matches("Python", terms("fizzbuz python"))).toBe(false);
  expect(matches("Python", terms(""))).toBe(false);
});
