import { describe, expect, it } from "vitest";
import { plainText } from "./plain";
import { texAsText } from "./tex";

describe("TeX in signs", () => {
  it.each([
    ["a", "a"],
    ["x^2 + y^{2}", "x² + y²"],
    [String.raw`\frac{1}{2}`, "1/2"],
    [String.raw`\frac{\ln 2}{\ln(1 + r)}`, "(ln 2)/(ln(1 + r))"],
    [String.raw`A = P\,(1 + r)^n, \qquad n_{\text{double}} = 3`, "A = P (1 + r)ⁿ, n double = 3"],
    [String.raw`\sqrt{x} \times \alpha \leq 5\%`, "√x × α ≤ 5%"],
    [String.raw`e^{-\frac{x}{2}}`, "e^(-x/2)"],
    [String.raw`\left( \frac a b \right)`, "(a/b)"],
    [String.raw`\unknown{x}`, "unknown x"],
    ["", ""],
    ["{{{", ""],
  ])("%s is %s", (tex, said) => expect(texAsText(tex)).toBe(said));

  it("takes no time over braces without end", () => {
    const begun = performance.now();
    texAsText("{".repeat(50_000));
    texAsText(String.raw`\frac`.repeat(400));
    texAsText("x^".repeat(1000));
    texAsText("^".repeat(50_000));
    expect(performance.now() - begun).toBeLessThan(2000);
  });
});

describe("Markdown as plain text", () => {
  it.each([
    ["## In code", "In code"],
    ["**Time matters** more *than* `it` ~~was~~", "Time matters more than it was"],
    [
      "The derivation is in [the article](https://a.example/b_(c)).",
      "The derivation is in the article.",
    ],
    ["| Years | At 3 % |\n|------:|:------|\n| 5 | $1,159 |", "Years At 3 % 5 $1,159"],
    ["- one\n- [x] two\n1. three", "one two 1. three"],
    ["> quoted\n> twice", "quoted twice"],
    ["a\n\n---\n\nb", "a b"],
    ["```python\nprint(1)\n```", "print(1)"],
    ["It is $x^2$, or\n$$\n\\frac{1}{2}\n$$\nhalf.", "It is x², or 1/2 half."],
    [String.raw`So \(a\) and \[b\].`, "So a and b."],
    ["It costs $5 and $10 more.", "It costs $5 and $10 more."],
    ["snake_case and __init__ and _so_", "snake_case and __init__ and so"],
    ["The price is high and .NET , C++ ; x", "The price is high and .NET , C++ ; x"],
    ["`a_*b*` and ``c`d``", "a_*b* and c`d"],
    ["```\n# a\n- *b*\n```\nand *c*", "# a - *b* and c"],
    ["2 * 3 * 4 and a < b", "2 * 3 * 4 and a < b"],
    ["", ""],
  ])("%j is %j", (markdown, said) => expect(plainText(markdown)).toBe(said));

  it("takes no time over marks without end", () => {
    const begun = performance.now();
    for (const mark of [
      ...["[", "](", "$$", "\\(", "| ", "`", "` ", "*a", "*", "_", "__a", "_a", "- ", "--", " "],
      ...[
        "```\n",
        "~~~a\n",
        "\uE000",
        "\uE000_",
        "_\uE001",
        "\uE000\uE001",
        "\uE002",
        "👍",
        "``",
        "``a`",
        "~",
      ],
    ]) {
      plainText(mark.repeat(50_000));
    }
    expect(performance.now() - begun).toBeLessThan(5000);
  });
});
