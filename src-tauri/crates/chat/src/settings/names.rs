//! What the window calls the settings: the page's labels, and the words of a change that is undone.

use std::collections::BTreeMap;

use inference::PARAMETERS;

/// The names of all but [`PARAMETERS`].
const NAMES: [(&str, &str); 18] = [
    ("contextLength", "Context"),
    ("defaultPreset", "Preset for new chats"),
    ("device", "Device"),
    ("downloadFolder", "Download folder"),
    ("instructions", "Instructions"),
    ("kvType", "Chat memory precision"),
    ("lookup", "Faster repeats"),
    ("modelTitles", "Let the model name chats"),
    ("ownTemplates", "Chat template"),
    ("readAhead", "Start reading while I type"),
    ("samplingChanges", "Sampling"),
    ("sendWith", "Send with"),
    ("showStats", "Show speed under answers"),
    ("theme", "Theme"),
    ("thinking", "Think before answering"),
    ("threads", "Threads"),
    ("unloadMinutes", "Unload when idle"),
    ("zoom", "Zoom"),
];

/// The name of each setting, and of each value of the sampling, by its key.
pub fn setting_names() -> BTreeMap<&'static str, &'static str> {
    names().collect()
}

/// The name of one of them.
pub(super) fn name_of(key: &str) -> &'static str {
    let found = names().find(|(of, _)| *of == key);
    found.map_or("A setting", |(_, name)| name)
}

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES
        .into_iter()
        .chain(PARAMETERS.map(|it| (it.key, it.name)))
}
