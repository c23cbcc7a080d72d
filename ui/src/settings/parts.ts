import type { SettingsPage } from "../state/settings-pages";

/**
 * A part of a page other than a setting, with the texts shown on the page and found by the search.
 */
export type SettingsPart = { page: SettingsPage; label: string; hint: string; words: string };

export const parts = {
  servers: {
    page: "Tools",
    label: "Servers",
    hint: "Programs on this computer that bring tools of their own, over the Model Context Protocol (MCP).",
    words: "mcp add sandbox network log start stop json",
  },
  api: {
    page: "Local API",
    label: "Let other programs on this computer use Goldcrest",
    hint: "They send requests as they would to OpenAI, with a key. Nothing that they ask is stored, and your chats in this window are answered first.",
    words: "local api openai server http switch on off",
  },
  apiPort: {
    page: "Local API",
    label: "Port",
    hint: "From 1024 to 65535. Change it if another program has this one.",
    words: "address number in use",
  },
  apiKey: {
    page: "Local API",
    label: "Key",
    hint: "Every program has to send it.",
    words: "token password secret new replace",
  },
  apiOrigins: {
    page: "Local API",
    label: "Web pages that may use it",
    hint: "One site per line, such as https://example.org or http://localhost:3000. They need the key, too. Without a line, no web page may.",
    words: "origins cors browser sites",
  },
  export: {
    page: "Chats and data",
    label: "Export",
    hint: "All chats in one file: Markdown, a page that looks like Goldcrest, or JSONL with everything.",
    words: "save download backup json html",
  },
  import: {
    page: "Chats and data",
    label: "Import",
    hint: "JSONL of Goldcrest, the .zip that ChatGPT or Claude sends you, or chats of Jan and LM Studio. You can also drop a file or a folder on the window.",
    words: "zip jsonl json load",
  },
  backups: {
    page: "Chats and data",
    label: "Backups",
    hint: "Goldcrest makes one a day and keeps five. It also keeps the last five you make yourself, and what was here before a restore until you delete it.",
    words: "copy copies restore recover save",
  },
  dataFolder: {
    page: "Chats and data",
    label: "Data folder",
    hint: "Your chats, settings, backups and logs are here.",
    words: "move directory path location disk storage",
  },
  network: {
    page: "Privacy",
    label: "Network connections",
    hint: "How many there are now, how that is checked, and a report to copy.",
    words: "offline internet socket telemetry report",
  },
  version: {
    page: "About",
    label: "Version",
    hint: "The version of Goldcrest that you have.",
    words: "",
  },
  log: {
    page: "About",
    label: "Log file",
    hint: "A record of what the app did, for troubleshooting.",
    words: "debug error report path",
  },
  licences: {
    page: "About",
    label: "Licences of the software in Goldcrest",
    hint: "Each package with its texts.",
    words: "license open source copyright",
  },
} as const satisfies Record<string, SettingsPart>;
