/** LaTeX commands of documents rather than formulas: references, links, equation numbers, units. */

/** An argument in braces, which may contain one level of nested braces. */
const ARGUMENT = String.raw`\s*\{((?:[^{}\\]|\\.|\{(?:[^{}\\]|\\.)*\})*)\}`;
const command = (names: string, args: number, options = ""): RegExp =>
  new RegExp(String.raw`\\(?:${names})(?![a-zA-Z])${options}${ARGUMENT.repeat(args)}`, "gu");

const ENVIRONMENT = /\\(begin|end)\{(equation|align|alignat|gather|multline)\}/gu;
const EQNARRAY = /\\(begin|end)\{eqnarray\*?\}/gu;
const NOTHING =
  /\\(?:nonumber|notag|allowdisplaybreaks|noindent)(?![a-zA-Z])|\\(?:require|vspace\*?|label)\s*\{[^{}]*\}/gu;
const HREF = command("href", 1);
const URL = command("url|nolinkurl", 1);
const REFERENCE = command("ref|autoref|cref", 1);
const EQUATION_REFERENCE = command("eqref", 1);
const DOUBLE = command("mathbbm|mathds|mathbbmss", 1);
const CANCEL = command("cancel", 1);
const OPTION = String.raw`(?:\s*\[[^[\]]*\])?`;
const QUANTITY = command("SI|qty", 2, OPTION);
const UNIT = command("si|unit", 1, OPTION);
const NUMBER = command("num", 1, OPTION);
const ANGLE = command("ang", 1, OPTION);

/**
 * Rewrites formulas with commands that Temml supports. Drops equation numbers, since nothing in a
 * chat refers to them.
 */
export function plainTex(tex: string): string {
  if (!tex.includes("\\")) return tex;
  return (
    tex
      .replace(NOTHING, "")
      .replace(ENVIRONMENT, "\\$1{$2*}")
      .replace(EQNARRAY, (_, edge: string) => `\\${edge}{array}${edge === "begin" ? "{rcl}" : ""}`)
      .replace(HREF, "")
      .replace(URL, (_, address: string) => String.raw`\text{${escaped(address)}}`)
      .replace(REFERENCE, (_, label: string) => String.raw`\text{${escaped(label)}}`)
      .replace(EQUATION_REFERENCE, (_, label: string) => String.raw`\text{(${escaped(label)})}`)
      // WebKit strikes through the glyphs only, and the strokes of an x hide the line.
      .replace(CANCEL, String.raw`\cancel{\,$1\,}`)
      .replace(DOUBLE, String.raw`\mathbb{$1}`)
      .replace(/\\overarc(?![a-zA-Z])/gu, "\\overparen")
      .replace(QUANTITY, (whole, number: string, units: string) =>
        // The physics package has a command of this name with one argument.
        /\\[a-zA-Z]|^[a-zµΩ°%/^\d.~-]+$/iu.test(units)
          ? `${digits(number)}\\,${unit(units)}`
          : whole,
      )
      .replace(UNIT, (_, units: string) => unit(units))
      .replace(NUMBER, (_, number: string) => digits(number))
      .replace(ANGLE, (_, angle: string) => String.raw`${digits(angle)}^{\circ}`)
  );
}

/** Display environments, and their counterparts within a line. */
const WITHIN: Record<string, string> = {
  align: "aligned",
  alignat: "alignedat",
  equation: "gathered",
  gather: "gathered",
  multline: "gathered",
  split: "aligned",
};
const DISPLAYED = /\\(begin|end)\{(align|alignat|equation|gather|multline|split)\*?\}/gu;

/** Rewrites a formula for use in a line, for example in a table cell. */
export function inlineTex(tex: string): string {
  return tex
    .replace(DISPLAYED, (_, edge: string, name: string) => `\\${edge}{${WITHIN[name]}}`)
    .replace(/\\tag\*?\s*\{([^{}]*)\}/gu, String.raw`\quad\text{($1)}`);
}

const escaped = (text: string): string =>
  text.replace(/[\\{}]/gu, "").replace(/[#$%&_^~]/gu, "\\$&");

/** Formats scientific notation: 1e-3 becomes a power of ten. */
function digits(number: string): string {
  const [mantissa = "", exponent] = number.trim().split(/[eE]/u);
  if (exponent === undefined) return mantissa;
  return String.raw`${mantissa}\times 10^{${exponent}}`;
}

const PREFIXES: Record<string, string> = {
  pico: "p",
  nano: "n",
  micro: "µ",
  milli: "m",
  centi: "c",
  deci: "d",
  hecto: "h",
  kilo: "k",
  mega: "M",
  giga: "G",
  tera: "T",
};

const UNITS: Record<string, string> = {
  meter: "m",
  metre: "m",
  second: "s",
  minute: "min",
  hour: "h",
  day: "d",
  gram: "g",
  kg: "kg",
  ampere: "A",
  kelvin: "K",
  mole: "mol",
  candela: "cd",
  hertz: "Hz",
  newton: "N",
  pascal: "Pa",
  joule: "J",
  watt: "W",
  coulomb: "C",
  volt: "V",
  farad: "F",
  ohm: "Ω",
  siemens: "S",
  weber: "Wb",
  tesla: "T",
  henry: "H",
  lumen: "lm",
  lux: "lx",
  liter: "l",
  litre: "l",
  bar: "bar",
  electronvolt: "eV",
  bit: "bit",
  byte: "B",
  degree: "°",
  celsius: "°C",
  degreeCelsius: "°C",
  percent: "\\%",
  radian: "rad",
};

const POWERS: Record<string, string> = { squared: "^{2}", cubed: "^{3}" };

/** Formats units given by name or symbol. */
function unit(units: string): string {
  let tex = "";
  let word = "";
  const end = (): void => {
    if (word !== "") tex += `${/[}\w]$/u.test(tex) ? "\\," : ""}\\text{${word}}`;
    word = "";
  };
  for (const [, name, sign = ""] of units.matchAll(/\\([a-zA-Z]+)|([^\\])/gu)) {
    const prefix = PREFIXES[name ?? ""];
    const power = POWERS[name ?? ""];
    if (name === undefined && /[\p{L}°]/u.test(sign)) word += sign;
    else if (prefix !== undefined) word += prefix;
    else if (name !== undefined && UNITS[name] !== undefined) {
      word += UNITS[name];
      end();
    } else {
      end();
      if (name === undefined) tex += /[%#&$]/u.test(sign) ? `\\${sign}` : sign;
      else if (name === "per") tex += "/";
      else if (power !== undefined) tex += power;
      else word = UNITS[name] ?? name;
    }
  }
  end();
  return tex;
}
