//! The shown branch of a chat, for formats that have no tree.

use std::collections::HashMap;

use store::{MessageRecord, MessageState, WholeChat};

/// A message of the shown branch.
pub(crate) struct Shown<'a> {
    pub message: &'a MessageRecord,
    /// Which of how many versions it is.
    pub version: (usize, usize),
}

/// The shown branch, root first.
pub(crate) fn branch(whole: &WholeChat) -> Vec<Shown<'_>> {
    let mut siblings: HashMap<Option<u32>, Vec<u32>> = HashMap::new();
    for message in &whole.messages {
        siblings.entry(message.parent).or_default().push(message.id);
    }
    let mut branch = Vec::new();
    let mut at = whole.chat.leaf;
    while let Some(message) = at.and_then(|at| whole.messages.get(at as usize - 1)) {
        let versions = siblings.get(&message.parent).map_or(&[][..], Vec::as_slice);
        let place = versions.binary_search(&message.id).map_or(1, |at| at + 1);
        branch.push(Shown {
            message,
            version: (place, versions.len()),
        });
        at = message.parent;
    }
    branch.reverse();
    branch
}

/// How an answer ended, in the words of the window, where it did not simply end.
pub(crate) fn ending(message: &MessageRecord) -> Option<&str> {
    match message.state {
        MessageState::Done => None,
        MessageState::Stopped => Some("Stopped."),
        MessageState::Limit => Some("The answer reached its length limit."),
        MessageState::Interrupted | MessageState::Writing => Some("The answer was not finished."),
        MessageState::Failed => {
            let error = message.error.as_ref();
            Some(error.map_or("The answer failed.", |error| &error.message))
        }
    }
}

/// Thought for 12 s, in the words of the window.
pub(crate) fn thought(message: &MessageRecord) -> String {
    let seconds = (message.thinking_ms.unwrap_or(0) + 500) / 1000;
    match (message.thinking_ms, seconds) {
        (None, _) => "Thinking".to_owned(),
        (_, 0) => "Thought briefly".to_owned(),
        (_, 1..60) => format!("Thought for {seconds} s"),
        _ => format!("Thought for {} min {} s", seconds / 60, seconds % 60),
    }
}
