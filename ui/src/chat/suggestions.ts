import suggestions from "./suggestions.json";

/**
 * Requests that the bundled model answers well, verified by a Rust test. The guide answers the one
 * about privacy.
 */
export const forBundledModel: readonly string[] = suggestions.forBundledModel;

export const forLargeModel: readonly string[] = suggestions.forLargeModel;
