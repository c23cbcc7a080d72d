import type { Preset } from "../state/types";

/** What is in a preset, in a few words: its name is shown beside them. */
export function presetWords({ instructions, thinking, sampling }: Preset): string {
  const parts = [
    thinking !== null && (thinking ? "thinking" : "no thinking"),
    sampling.temperature !== null && `temperature ${sampling.temperature}`,
    instructions.trim() !== "" && "instructions",
  ].filter((part) => part !== false);
  const words = parts.join(", ");
  return words === "" ? "Uses your settings" : words.charAt(0).toUpperCase() + words.slice(1);
}
