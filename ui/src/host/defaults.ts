import type { Settings } from "./host";

/** The settings of which none was changed. */
export const defaultSettings: Settings = {
  theme: "system",
  device: "auto",
  threads: null,
  contextLength: null,
  kvType: "f16",
  ownTemplates: [],
  sampling: {
    temperature: null,
    topP: null,
    topK: null,
    minP: null,
    repeatPenalty: null,
    seed: null,
  },
  maxTokens: null,
  lookup: true,
  instructions: "",
  thinking: true,
  sendWith: "enter",
  zoom: 100,
  showStats: true,
};
