import temml from "temml";
import { escapeHtml } from "./code";
import { inlineTex, plainTex } from "./latex";

/** Longer ones are no formula that anybody wrote, and would take long to set. */
const LONGEST = 2000;
/** Levels of braces. */
const DEEPEST = 100;
/** Commands that define others: what they expand to may have any length. */
const DEFINITION =
  /\\(?:[gex]?def|let|futurelet|(?:re|provide)?newcommand|DeclareMathOperator)(?![a-zA-Z])/u;

/** Temml's colour of a command that it does not know. */
const UNKNOWN = "#b22222";

const made = new Map<string, string>();
const MOST_MADE = 500;

/** TeX as MathML; the source itself when it is not TeX. */
export function formula(tex: string, display: boolean): string {
  // While a paragraph grows, it is drawn again with the formulas that it has already.
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

/** Signs beside nothing, as in chemistry: WebKit draws them where there is something, though it be empty. */
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

/** A tag that has a style. */
const STYLED = /<([a-z]+)((?: [a-z-]+="[^"]*")*) style="([^"]*)"((?: [a-z-]+="[^"]*")*)>/gu;

/**
 * The content security policy allows no inline styles, so what they say is said by classes, which `math.css` defines, and
 * by attributes of MathML.
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

/** Spaces beside cells, in hundredths of an em. */
const SPACES = [0, 14, 40, 50, 100, 200];
const POINTS_OF_EM = 11.955;

/** The class of `math.css` that stands for a declaration; empty where the formula is as good without. */
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
