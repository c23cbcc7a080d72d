export const settingsPages = ["General", "Answers", "Model", "Keyboard", "About"] as const;
export type SettingsPage = (typeof settingsPages)[number];
