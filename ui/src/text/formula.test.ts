import { describe, expect, test } from "vitest";
import { formula } from "./formula";
import known from "./formulas.json";

/** Commands and environments that models use. */
test.each(known)("%s", (tex) => {
  for (const display of [false, true]) {
    const html = formula(tex, display);
    expect(html).toMatch(/^<math[^>]*>.*<\/math>$/su);
    expect(html).not.toMatch(/ style=| id=|href=|unknown|NaN|undefined/u);
  }
});

describe("what is unknown costs itself alone", () => {
  test.each(["\\nosuchcommand{x} + 1", "\\frac{\\nosuch}{2}"])("%s", (tex) => {
    expect(formula(tex, false)).toMatch(/^<math.*<mtext class="unknown">\\nosuch.*<m[in]>[x12]</su);
  });
});

describe("what is no formula is its source", () => {
  test.each([
    "\\frac{a",
    "\\begin{nosuch}x\\end{nosuch}",
    "x".repeat(2001),
    "{".repeat(101) + "}".repeat(101),
    "\\def\\a#1{#1#1}\\a{\\a{x}}",
    "\\newcommand{\\a}{b}\\a",
  ])("%s", (tex) => {
    expect(formula(tex, false)).toMatch(/^<code>/u);
  });
});

test("a formula writes no markup of its own", () => {
  const markup = '<img src=x onerror="y">';
  for (const command of ["text", "operatorname", "mathrm", "href", "url", "label", "tag", "ref"])
    for (const tex of [
      `\\${command}{${markup}}`,
      `\\${command}{${markup}}{<b>}`,
      `\\verb|${markup}|`,
    ])
      expect(formula(tex, true)).not.toMatch(/<img|<b>|onerror=(?!&quot;)/u);
});

test("what stands beside nothing stands beside a space", () => {
  expect(formula("\\ce{H2O}", false)).toContain('<msub><mspace width="0" height="0.7em">');
});
