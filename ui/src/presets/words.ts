import type { Preset } from "../state/types";

/** Summary of a preset, to be shown next to its name. */
export function presetWords({ instructions, thinking, sampling, tools }: Preset): string {
  const parts = [
    thinking !== null && (thinking ? "thinking" : "no thinking"),
    sampling.temperature !== null && `temperature ${sampling.temperature}`,
    tools && (tools.length === 1 ? "1 tool" : `${tools.length} tools`),
    instructions.trim() !== "" && "instructions",
  ].filter((part) => typeof part === "string");
  const words = parts.join(", ");
  return words === "" ? "Uses your settings" : words.charAt(0).toUpperCase() + words.slice(1);
}
