import { withoutBidiControls } from "./bidi";
import { indented, isObject, type JsonTable, oneLine, parsed, tableOf } from "./json";

/** Control characters other than tabs and line breaks. A terminal would obey them. */
const CONTROLS = /[\0-\u0008\u000B-\u001F\u007F-\u009F]/gu;

/** Text of a program or a model, without characters that could make it look like another. */
export const harmless = (text: string): string =>
  withoutBidiControls(text).replace(/\r\n?/gu, "\n").replace(CONTROLS, "\uFFFD");

/** Name on one line. */
export const harmlessName = (name: string): string =>
  harmless(name).replaceAll(/\s+/gu, " ").trim();

/** Arguments of a call as they are shown: a program, or text with JSON indented. */
export type ShownArguments = { language: "python" | "text" | null; text: string };

/** Result of a call as it is shown. */
export type ShownResult = { kind: "text"; text: string } | ({ kind: "table" } & JsonTable);

/** Name of the built-in tool whose argument is a program. */
const PYTHON = "run_python";

export function argumentsOf(name: string, raw: string): ShownArguments {
  const value = parsed(raw);
  if (!isObject(value)) return { language: null, text: harmless(raw) };
  const [only, ...others] = Object.values(value);
  const { code } = value;
  if (name === PYTHON && typeof code === "string" && others.length === 0)
    return { language: "python", text: harmless(code) };
  if (typeof only === "string" && others.length === 0 && only.trim().includes("\n"))
    return { language: "text", text: harmless(only) };
  return { language: null, text: harmless(indented(raw)) };
}

/** Arguments in one line, for the head of a call. */
export function summaryOf(name: string, raw: string): string {
  const value = parsed(raw);
  if (!isObject(value)) return harmlessName(raw);
  const { code } = value;
  if (name === PYTHON && typeof code === "string")
    return harmlessName(code.trim().split("\n")[0] ?? "");
  return harmlessName(oneLine(value) ?? raw);
}

export function resultOf(raw: string): ShownResult {
  const value = parsed(raw);
  const table = tableOf(raw, value);
  if (table)
    return {
      ...table,
      kind: "table",
      columns: table.columns.map(harmless),
      rows: table.rows.map((row) => row.map(harmless)),
    };
  const isJson = value !== undefined && typeof value === "object" && value !== null;
  return { kind: "text", text: harmless(isJson ? indented(raw) : raw) };
}
