import { Channel, invoke } from "@tauri-apps/api/core";
import type { Host, HostEvent } from "./host";

/** The real host: Tauri commands, and one channel for events. */
export const tauriHost: Host = {
  subscribe(listener) {
    const channel = new Channel<HostEvent>(listener);
    return invoke("subscribe", { channel });
  },
  snapshot: () => invoke("snapshot"),
  openChat: (chat) => invoke("open_chat", { chat }),
  send: (chat, text, thinking) => invoke("send", { chat, text, thinking }),
  regenerate: (message, thinking) => invoke("regenerate", { message, thinking }),
  continueAnswer: (message) => invoke("continue_answer", { message }),
  editMessage: (message, text, answer) => invoke("edit_message", { message, text, answer }),
  showSibling: (message) => invoke("show_sibling", { message }),
  stop: (chat) => invoke("stop", { chat }),
  renameChat: (chat, title) => invoke("rename_chat", { chat, title }),
  deleteChat: (chat) => invoke("delete_chat", { chat }),
  restoreChat: (chat) => invoke("restore_chat", { chat }),
  search: (query) => invoke("search", { query }),
  saveDraft: (chat, text) => invoke("save_draft", { chat, text }),
  saveSettings: (settings) => invoke("save_settings", { settings }),
  pickModel: () => invoke("pick_model"),
  openModel: (path) => invoke("open_model", { path }),
  useStarter: () => invoke("use_starter"),
  openLink: (url) => invoke("open_link", { url }),
};
