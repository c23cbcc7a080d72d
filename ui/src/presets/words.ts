import type { Preset } from "../state/types";

/** Summary of a preset, to be shown next to its name. */
export function presetWords({ instructions, thinking, sampling }: Preset): string {
  const parts = [
    thinking !== null && (thinking ? "thinking" : "no thinking"),
    sampling.temperature !== null && `temperature ${sampling.temperature}`,
    instructions.trim() !== "" && "instructions",
  ].filter((part) => part !== false);
  const words = parts.join(", ");
  return words === "" ? "Uses your settings" : words.charAt(0).toUpperCase() + words.slice(1);
}
