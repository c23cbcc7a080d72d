import type { CallView, Part, ToolOutcome } from "../state/types";

export type CallPart = Extract<Part, { kind: "tool-call" }>;
export type ResultPart = Extract<Part, { kind: "tool-result" }>;

/** State of a call. `next`: it comes after the ones that wait or run. */
export type CallState = ToolOutcome | "asks" | "runs" | "next";

export function callState(
  result: ResultPart | null,
  view: CallView | undefined,
  writing: boolean,
): CallState {
  if (result) return result.outcome ?? "done";
  if (view) return view.status;
  return writing ? "next" : "not-run";
}
