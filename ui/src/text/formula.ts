import temml from "temml";
import { escapeHtml } from "./code";
import { inlineTex, plainTex } from "./latex";

/** Length above which a text is not rendered: it is unlikely to be a formula, and slow. */
const LONGEST = 2000;
/** Limit of nested braces. */
const DEEPEST = 100;
/** Commands that define macros, whose expansion has no limit. */
const DEFINITION =
  /\\(?:[gex]?def|let|futurelet|(?:re|provide)?newcommand|DeclareMathOperator)(?![a-zA-Z])/u;

/** Colour in which Temml renders an unknown command. */
const UNKNOWN = "#b22222";

const made = new Map<string, string>();
const MOST_MADE = 500;

/** Converts TeX to MathML, or returns the source if it is not valid TeX. */
export function formula(tex: string, display: boolean): string {
  // A growing paragraph is rendered again with the same formulas.
  const key = `${display ? "block" : "inline"} ${tex}`;
  const known = made.get(key);
  if (known !== undefined) return known;
  const html = make(tex, display);
  if (made.size >= MOST_MADE) made.clear();
  made.set(key, html);
  return html;
}

function make(tex: string, display: boolean): string {
  try {
    if (tex.length > LONGEST || DEFINITION.test(tex) || depthOf(tex) > DEEPEST)
      throw new Error("it is no formula that anybody wrote");
    const plain = plainTex(tex);
    const html = temml.renderToString(display ? plain : inlineTex(plain), {
      displayMode: display,
      errorColor: UNKNOWN,
      maxExpand: 200,
    });
    if (!html.startsWith("<math")) throw new Error("it is no TeX");
    return withoutStyles(html).replace(EMPTY_BASE, `$1<mspace width="0" height="0.7em"></mspace>`);
  } catch {
    return `<code${display ? ` class="formula-open"` : ""}>${escapeHtml(tex)}</code>`;
  }
}

/**
 * Scripts without a base, as in chemistry. WebKit only renders them on a base, even an empty one.
 */
const EMPTY_BASE = /(<m(?:sub|sup|subsup)>)<mrow><\/mrow>/gu;

function depthOf(tex: string): number {
  let deepest = 0;
  let depth = 0;
  for (const sign of tex) {
    if (sign === "{") deepest = Math.max(deepest, ++depth);
    else if (sign === "}") depth -= 1;
  }
  return deepest;
}

/** A tag with a style attribute. */
const STYLED = /<([a-z]+)((?: [a-z-]+="[^"]*")*) style="([^"]*)"((?: [a-z-]+="[^"]*")*)>/gu;

/**
 * Replaces inline styles, which the content security policy forbids, by MathML attributes and by
 * classes defined in `math.css`.
 */
function withoutStyles(html: string): string {
  return html.replace(STYLED, (_, name: string, before: string, style: string, after: string) => {
    const attributes = before + after;
    const classes = [/ class="([^"]*)"/u.exec(attributes)?.[1] ?? ""];
    let others = attributes.replace(/ class="[^"]*"/u, "");
    for (const declaration of style.split(";")) {
      const [property = "", value = ""] = declaration.split(":");
      if (property === "color" && value === UNKNOWN) classes.push("unknown");
      else if (property === "color") others += ` mathcolor="${value}"`;
      else if (property === "background-color") others += ` mathbackground="${value}"`;
      else classes.push(classFor(property, value));
    }
    const all = classes.filter((each) => each !== "").join(" ");
    return `<${name}${others}${all === "" ? "" : ` class="${all}"`}>`;
  });
}

/** Steps of cell padding in `math.css`, in hundredths of an em. */
const SPACES = [0, 14, 40, 50, 100, 200];
const POINTS_OF_EM = 11.955;

/** Class in `math.css` that replaces a declaration; empty if the formula does not need it. */
function classFor(property: string, value: string): string {
  const [, side = ""] = /^(?:padding|border)-(left|right|top|bottom)$/u.exec(property) ?? [];
  if (property.startsWith("padding-") && side !== "") {
    const ems = Number.parseFloat(value) / (value.endsWith("pt") ? POINTS_OF_EM : 1);
    const nearest = SPACES.reduce((best, each) =>
      Math.abs(each - ems * 100) < Math.abs(best - ems * 100) ? each : best,
    );
    return `pad-${side}-${nearest}`;
  }
  if (property.startsWith("border-") && side !== "") return `line-${side}`;
  if (property === "border") return "boxed";
  if (property === "width" && value === "50%") return "half";
  if (property === "width" && value === "100%") return "whole";
  return property === "margin-left" ? "closer" : "";
}
