//! What the window calls the settings: the page's labels, and the words of a change that is undone.

use std::collections::BTreeMap;

const NAMES: [(&str, &str); 26] = [
    ("contextLength", "Context"),
    ("defaultPreset", "Preset for new chats"),
    ("device", "Device"),
    ("downloadFolder", "Download folder"),
    ("instructions", "Instructions"),
    ("kvType", "Chat memory precision"),
    ("lookup", "Faster repeats"),
    ("maxTokens", "Maximum answer length"),
    ("minP", "Min-p"),
    ("modelTitles", "Titles by the model"),
    ("ownTemplates", "Chat template"),
    ("readAhead", "Read while you write"),
    ("repeatPenalty", "Repeat penalty"),
    ("samplingChanges", "Sampling"),
    ("seed", "Seed"),
    ("sendWith", "Send with"),
    ("showStats", "Show speed under answers"),
    ("temperature", "Temperature"),
    ("theme", "Theme"),
    ("thinking", "Think before answering"),
    ("thinkingBudget", "Thinking budget"),
    ("threads", "Threads"),
    ("topK", "Top-k"),
    ("topP", "Top-p"),
    ("unloadMinutes", "Unload when idle"),
    ("zoom", "Zoom"),
];

/// The name of each setting, and of each value of the sampling, by its key.
pub fn setting_names() -> BTreeMap<&'static str, &'static str> {
    NAMES.into_iter().collect()
}

/// The name of one of them.
pub(super) fn name_of(key: &str) -> &'static str {
    let found = NAMES.iter().find(|(of, _)| *of == key);
    found.map_or("A setting", |(_, name)| name)
}
