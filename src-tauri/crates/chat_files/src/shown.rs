//! The shown branch of a chat, for formats that have no tree.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use serde::Deserialize;
use store::{MessageRecord, MessageState, Part, Role, WholeChat};

use crate::dates::{day, moment};

/// A message of the shown branch.
pub(crate) struct Shown<'a> {
    pub message: &'a MessageRecord,
    /// The version, from 1, and the number of versions.
    version: (usize, usize),
}

impl Shown<'_> {
    /// The time of writing, and the shown version if there are several.
    pub fn when(&self, zone: &TimeZone) -> String {
        let at = moment(self.message.created_at, zone);
        match self.version {
            (_, 1) => at,
            (place, count) => format!("{at}, version {place} of {count}"),
        }
    }
}

/// The day on which a chat began, and the day of its last message if it differs.
pub(crate) fn days(whole: &WholeChat, zone: &TimeZone) -> String {
    let days = [whole.chat.created_at, whole.chat.updated_at];
    let [begun, last] = days.map(|at| day(at, zone));
    if begun == last {
        begun
    } else {
        format!("{begun} to {last}")
    }
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

/// Returns the heading of a message.
pub(crate) fn author(role: Role) -> &'static str {
    match role {
        Role::User => "You",
        Role::Assistant => "Answer",
        Role::System => "Instructions",
        Role::Tool => "Tool",
    }
}

/// Returns the heading of a call, in the words of the window.
pub(crate) fn called(tool: &str) -> String {
    format!("Called {tool}")
}

/// Returns the note below an answer, in the words of the window: its author if no model wrote it, or its end if it is
/// incomplete.
pub(crate) fn ending(message: &MessageRecord) -> Option<&str> {
    match message.state {
        MessageState::Done => message.guide.as_ref().map(|_| "From the guide."),
        MessageState::Stopped => Some("Stopped."),
        MessageState::Limit if has_repeated(message) => Some("Stopped: it was repeating itself."),
        MessageState::Limit => Some("The answer reached its length limit."),
        MessageState::Interrupted | MessageState::Writing => {
            Some("Goldcrest closed before this answer was finished.")
        }
        MessageState::Failed => {
            let error = message.error.as_ref();
            Some(error.map_or("The answer failed.", |error| &error.message))
        }
    }
}

fn has_repeated(message: &MessageRecord) -> bool {
    #[derive(Deserialize)]
    struct End {
        #[serde(default)]
        repeated: bool,
    }
    let end =
        (message.stats.as_deref()).and_then(|stats| serde_json::from_str::<End>(stats.get()).ok());
    end.is_some_and(|end| end.repeated)
}

/// "Thought for 12 s", in the words of the window. The time is that of all thinking, and stands on the first: `at` is the
/// index of the part.
pub(crate) fn thought(message: &MessageRecord, at: usize) -> String {
    let is_thinking = |part: &Part| matches!(part, Part::Thinking { .. });
    if message.parts.0.iter().position(is_thinking) != Some(at) {
        return "Thought".to_owned();
    }
    let seconds = (message.thinking_ms.unwrap_or(0) + 500) / 1000;
    match seconds {
        0 => "Thought briefly".to_owned(),
        1..60 => format!("Thought for {seconds} s"),
        _ => format!("Thought for {} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use store::Parts;

    use super::*;

    const ENDINGS: &str = include_str!("../../../../ui/src/state/endings.ts");
    const THINKING: &str = include_str!("../../../../ui/src/chat/Thinking.svelte");

    #[test]
    fn an_answer_that_repeated_itself_or_is_the_guides_says_so() {
        let mut message = MessageRecord::new(1, Role::Assistant, String::new(), 0);
        message.guide = Some("theme".to_owned());
        assert_eq!(ending(&message), Some("From the guide."));
        message.state = MessageState::Limit;
        for (repeated, words) in [
            (true, "Stopped: it was repeating itself."),
            (false, "The answer reached its length limit."),
        ] {
            let stats = serde_json::json!({ "repeated": repeated });
            message.stats = serde_json::value::to_raw_value(&stats).ok();
            assert_eq!(ending(&message), Some(words));
            assert!(ENDINGS.contains(&format!("\"{words}\"")), "{words}");
        }
    }

    #[test]
    fn the_words_are_those_of_the_window() {
        let mut message = MessageRecord::new(1, Role::Assistant, String::new(), 0);
        for state in [
            MessageState::Stopped,
            MessageState::Limit,
            MessageState::Interrupted,
            MessageState::Failed,
        ] {
            message.state = state;
            let words = ending(&message).expect("it did not simply end");
            assert!(ENDINGS.contains(&format!("\"{words}\"")), "{words}");
        }
        let thinking = |text: &str| Part::Thinking { text: text.into() };
        message.parts = Parts(vec![thinking("Hm."), thinking("So.")]);
        assert!(THINKING.contains(&format!("\"{}\"", thought(&message, 0))));
        for (ms, time) in [(12_400, "12 s"), (61_000, "1 min 1 s")] {
            message.thinking_ms = Some(ms);
            assert_eq!(thought(&message, 0), format!("Thought for {time}"));
            assert_eq!(thought(&message, 1), "Thought");
        }
        assert!(THINKING.contains("`Thought for ${time}`"));
        let times = "`${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`";
        assert!(THINKING.contains(times));
    }
}
