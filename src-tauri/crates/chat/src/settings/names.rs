//! Display names of the settings: the page's labels, and the words of an undone change.

use std::collections::BTreeMap;

use inference::PARAMETERS;

/// Names of the settings other than [`PARAMETERS`].
const NAMES: [(&str, &str); 24] = [
    ("allowedTools", "Tools that run without asking"),
    ("contextLength", "Context"),
    ("defaultPreset", "Preset for new chats"),
    ("device", "Device"),
    ("downloadFolder", "Download folder"),
    ("guideAnswers", "Answer from the guide"),
    ("instructions", "Instructions"),
    ("kvType", "Chat memory precision"),
    ("lookup", "Faster repeats"),
    ("modelTitles", "Let the model name chats"),
    ("readAhead", "Start reading while I type"),
    ("samplingChanges", "Sampling"),
    ("sendWith", "Send with"),
    ("serverSeconds", "Time for a server to start"),
    ("showStats", "Show speed under answers"),
    ("theme", "Theme"),
    ("thinking", "Think before answering"),
    ("threads", "Threads"),
    ("toolResultCharacters", "Longest result"),
    ("toolRounds", "Rounds of calls"),
    ("toolSeconds", "Time for a call"),
    ("tools", "Tools in new chats"),
    ("unloadMinutes", "Unload when idle"),
    ("zoom", "Zoom"),
];

/// Returns the name of each setting and sampling value by its key.
pub fn setting_names() -> BTreeMap<&'static str, &'static str> {
    names().collect()
}

/// Returns the name of one of them.
pub(super) fn name_of(key: &str) -> &'static str {
    let found = names().find(|(of, _)| *of == key);
    found.map_or("A setting", |(_, name)| name)
}

fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES
        .into_iter()
        .chain(PARAMETERS.map(|it| (it.key, it.name)))
}
