/**
 * Conversion of TeX to plain text for readers and screen readers: `\frac{1}{2}` becomes 1/2, `x^2`
 * becomes x².
 */

const SIGNS: Record<string, string> = {
  times: "×",
  cdot: "·",
  div: "÷",
  pm: "±",
  mp: "∓",
  leq: "≤",
  le: "≤",
  geq: "≥",
  ge: "≥",
  neq: "≠",
  ne: "≠",
  approx: "≈",
  equiv: "≡",
  sim: "∼",
  propto: "∝",
  infty: "∞",
  sum: "∑",
  prod: "∏",
  int: "∫",
  partial: "∂",
  nabla: "∇",
  in: "∈",
  notin: "∉",
  subset: "⊂",
  subseteq: "⊆",
  cup: "∪",
  cap: "∩",
  emptyset: "∅",
  forall: "∀",
  exists: "∃",
  neg: "¬",
  land: "∧",
  lor: "∨",
  to: "→",
  rightarrow: "→",
  leftarrow: "←",
  Rightarrow: "⇒",
  implies: "⇒",
  iff: "⇔",
  ldots: "…",
  cdots: "…",
  dots: "…",
  degree: "°",
  circ: "°",
  alpha: "α",
  beta: "β",
  gamma: "γ",
  delta: "δ",
  epsilon: "ε",
  varepsilon: "ε",
  zeta: "ζ",
  eta: "η",
  theta: "θ",
  iota: "ι",
  kappa: "κ",
  lambda: "λ",
  mu: "μ",
  nu: "ν",
  xi: "ξ",
  pi: "π",
  rho: "ρ",
  sigma: "σ",
  tau: "τ",
  phi: "φ",
  varphi: "φ",
  chi: "χ",
  psi: "ψ",
  omega: "ω",
  Gamma: "Γ",
  Delta: "Δ",
  Theta: "Θ",
  Lambda: "Λ",
  Pi: "Π",
  Sigma: "Σ",
  Phi: "Φ",
  Psi: "Ψ",
  Omega: "Ω",
};

const RAISED: Record<string, string> = { "0": "⁰", "1": "¹", "2": "²", "3": "³", n: "ⁿ" };

/** A single character, or the content of braces. Inner braces were resolved before. */
const ARGUMENT = String.raw`(?:\{([^{}]*)\}|([^\s{}\\^_]))`;
const FRACTION = new RegExp(String.raw`\\[dt]?frac\s*${ARGUMENT}\s*${ARGUMENT}`, "gu");
const ROOT = new RegExp(String.raw`\\sqrt\s*${ARGUMENT}`, "gu");
const RAISING = new RegExp(String.raw`\^\s*${ARGUMENT}`, "gu");
const LOWERING = new RegExp(String.raw`_\s*${ARGUMENT}`, "gu");
const STYLED = /\\(?:text|mathrm|mathbf|mathit|operatorname|textbf|textit|boxed)\s*\{([^{}]*)\}/gu;

const COMMAND = new RegExp(
  String.raw`\\(?:[dt]?frac|sqrt|text|math[a-z]+|left|right|q?quad|ln|log|exp|sin|cos|tan|lim|min|max|begin|${Object.keys(SIGNS).join("|")})(?![a-zA-Z])`,
  "u",
);

/** Checks if a text contains TeX commands. Windows paths also contain backslashes. */
export const hasTex = (text: string): boolean =>
  COMMAND.test(text) || (text.includes("$$") && /\\[a-zA-Z]{2,}/u.test(text));

/** Limit of nesting in a formula. */
const DEEPEST = 20;

/** Length above which a text is not converted: it is unlikely to be a formula, and slow. */
const LONGEST = 2000;

/** Placeholder for a ^ that was already converted. */
const POWER = "\uE010";

export function texAsText(tex: string): string {
  if (tex.length > LONGEST) return tex;
  let text = tex.replace(/\\(?:left|right|displaystyle|limits)(?![a-zA-Z])/gu, "");
  // Innermost braces first.
  for (let depth = 0; depth < DEEPEST; depth++) {
    const before = text;
    text = text
      .replace(STYLED, "$1")
      .replace(FRACTION, (_, ...parts: (string | undefined)[]) => {
        const [a, b, c, d] = parts;
        return `${grouped(a ?? b ?? "")}/${grouped(c ?? d ?? "")}`;
      })
      .replace(ROOT, (_, a?: string, b?: string) => `√${grouped(a ?? b ?? "")}`)
      .replace(RAISING, (_, a?: string, b?: string) => raised((a ?? b ?? "").trim()))
      .replace(LOWERING, (_, a?: string, b?: string) => ` ${a ?? b ?? ""} `);
    if (text === before) break;
  }
  return text
    .replace(/\\q?quad(?![a-zA-Z])/gu, " ")
    .replace(/\\([a-zA-Z]+)(\(?)/gu, (_, name: string, opens: string) =>
      opens === "" ? ` ${SIGNS[name] ?? name} ` : ` ${SIGNS[name] ?? name}(`,
    )
    .replace(/\\[,;:! ]/gu, " ")
    .replace(/\\\\|[{}]|\\(?=[%&$#_])/gu, "")
    .replace(/&/gu, " ")
    .replaceAll(POWER, "^")
    .replace(/\s+/gu, " ")
    .replace(/ (?=[),.])|(?<=\() /gu, "")
    .trim();
}

function grouped(part: string): string {
  const inner = part.trim();
  return /^[\p{L}\p{N}.]*$/u.test(inner) ? inner : `(${inner})`;
}

function raised(part: string): string {
  return RAISED[part] ?? `${POWER}${grouped(part)}`;
}
