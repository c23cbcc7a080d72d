import { defaultSettings } from "../host/defaults";
import type { PresetContent } from "../state/types";

const sampling = defaultSettings.samplingChanges;

/** Suggested presets for new users. */
export const starters: readonly PresetContent[] = [
  {
    name: "Editor",
    instructions:
      "Correct spelling, grammar and style. Keep the meaning, the tone and the language. Return the corrected text only.",
    thinking: false,
    sampling: { ...sampling, temperature: 0.3 },
  },
  {
    name: "Tutor",
    instructions:
      "Teach step by step. Explain one idea at a time in plain words, with an example, and then ask one short question to check that it was understood.",
    thinking: true,
    sampling,
  },
  {
    name: "Coder",
    instructions:
      "You are an experienced programmer. Answer with complete, working code first, and then explain in a few sentences what is not obvious.",
    thinking: true,
    sampling,
  },
];
