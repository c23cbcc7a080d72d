import suggestions from "./suggestions.json";

/** Requests that the demo model answers rightly, with thinking and without: a Rust test asks them all. */
export const forDemoModel: readonly string[] = suggestions.forDemoModel;

export const forLargeModel: readonly string[] = suggestions.forLargeModel;
