import { describe, expect, test } from "vitest";
import { md } from "./markdown";

/** Contents of the formula tokens in a text. */
function formulas(text: string): string[] {
  return md
    .parse(text, {})
    .flatMap((token) => [token, ...(token.children ?? [])])
    .filter((token) => token.type === "math_inline" || token.type === "math_block")
    .map((token) => token.content);
}

describe("a single dollar sign", () => {
  test.each([
    ["It costs $5 and $10 together.", []],
    ["From $5 to $10$ at most", ["10"]],
    ["a $ b $ c", []],
    ["one $x$ and two $y^2$", ["x", "y^2"]],
    ["$x$-axis, ($y$)", ["x", "y"]],
    ["$20,000 is not a formula, $a_1$ is", ["a_1"]],
    ["an open $x without an end", []],
    ["escaped \\$x$ is text", []],
    ["the price is \\$5, and $p = \\$5$", ["p = \\$5"]],
    ["no emphasis inside $a*b*c$", ["a*b*c"]],
    ["$$", []],
    ["$ $", []],
  ])("%s", (text, found) => {
    expect(formulas(text)).toEqual(found);
  });
});

describe("the other marks", () => {
  test.each([
    ["inline \\(x + 1\\) here", ["x + 1"]],
    ["\\[\n\\frac{a}{b}\n\\]", ["\\frac{a}{b}"]],
    ["$$\nE = mc^2\n$$", ["E = mc^2"]],
    ["$$E = mc^2$$", ["E = mc^2"]],
    ["text\n$$\na\n$$\ntext", ["a"]],
    ["with $$x$$ inside a line", ["x"]],
    ["- in a list:\n  $$\n  a\n  $$\n- next", ["a"]],
  ])("%s", (text, found) => {
    expect(formulas(text)).toEqual(found);
  });
});

describe("code is never a formula", () => {
  test.each(["`$x$`", "```\n$x$\n$$\ny\n$$\n```", "```sh\necho $HOME $PATH$\n", "    $x$"])(
    "%s",
    (text) => {
      expect(formulas(text)).toEqual([]);
    },
  );
});

test("a formula whose end has not come stays as its source", () => {
  const html = md.render("Before\n\n$$\n\\frac{a}{<b>");
  expect(html).toContain("\\frac{a}{&lt;b&gt;");
  expect(html).not.toContain("<math");
});

test("what is no TeX is shown as its source", () => {
  expect(md.render("$\\frac{<x>$")).toContain("<code>\\frac{&lt;x&gt;</code>");
});

test("a formula's comma stays on its line", () => {
  expect(md.render("a rate $r$, then $n$ years")).toMatch(
    /<span class="unbroken">.*<\/span>,<\/span> then/u,
  );
});

test("a formula is MathML without inline styles or wrappers that a sanitiser would spill", () => {
  const html = md.render("$\\boxed{\\begin{cases} a \\\\ b \\end{cases}} \\ln 2$");
  expect(html).toContain("<math");
  expect(html).not.toMatch(/ style=|annotation|semantics/u);
});
