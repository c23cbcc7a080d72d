export const settingsPages = [
  "General",
  "Model",
  "Answers",
  "Tools",
  "Local API",
  "Chats and data",
  "Privacy",
  "Keyboard",
  "About",
] as const;
export type SettingsPage = (typeof settingsPages)[number];
