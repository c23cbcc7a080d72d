import { expect, test } from "vitest";
import { plainTex } from "./latex";

test.each([
  [String.raw`\SI{5}{\meter\per\second\squared}`, String.raw`5\,\text{m}/\text{s}^{2}`],
  [String.raw`\SI{1e3}{kg}`, String.raw`1\times 10^{3}\,\text{kg}`],
  [String.raw`\qty{3}{\kilo\watt\hour}`, String.raw`3\,\text{kW}\,\text{h}`],
  [String.raw`\qty{\frac{a}{b}}{c}`, String.raw`\frac{a}{b}\,\text{c}`],
  [String.raw`\si{m/s^2}`, String.raw`\text{m}/\text{s}^2`],
  [String.raw`\num{12} \ang{45}`, String.raw`12 45^{\circ}`],
  [String.raw`\href{https://a.example/%20_}{y}`, "{y}"],
  [String.raw`\url{https://a.example/_}`, String.raw`\text{https://a.example/\_}`],
  [String.raw`x \label{eq:a} \nonumber`, "x  "],
  [String.raw`\eqref{eq:a}`, String.raw`\text{(eq:a)}`],
  [String.raw`\begin{align} a \end{align}`, String.raw`\begin{align*} a \end{align*}`],
  [String.raw`\begin{align*} a \end{align*}`, String.raw`\begin{align*} a \end{align*}`],
  [String.raw`\begin{eqnarray} a \end{eqnarray}`, String.raw`\begin{array}{rcl} a \end{array}`],
  [String.raw`\mathbbm{1}`, String.raw`\mathbb{1}`],
  ["x + 1", "x + 1"],
])("%s", (tex, plain) => expect(plainTex(tex)).toBe(plain));

test("takes no time over braces without end", () => {
  const begun = performance.now();
  for (const part of ["\\SI{", "\\href{", "\\SI{a}", "\\SI[", "\\url{\\", "{"])
    plainTex(part.repeat(400));
  expect(performance.now() - begun).toBeLessThan(1000);
});
