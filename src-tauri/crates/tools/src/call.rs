//! Rules for the calls of an answer, which every loop of calls obeys.

use std::sync::Arc;

use figures::{count, without_controls};
use serde_json::{Map, Value};

use crate::arguments::check_arguments;
use crate::tool::Tool;

/// Note with which the result of a call is repeated, instead of running the tool again.
pub const REPEATED: &str =
    "This call was made before with the same arguments; its result is repeated.";
/// Result without any text.
const NOTHING: &str = "(no output)";
/// Bytes of an unknown name that are quoted.
const LONGEST_NAME: usize = 64;

/// A call as a model made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadeCall<'a> {
    /// Name of the tool.
    pub name: &'a str,
    /// Arguments.
    pub arguments: &'a str,
}

/// Answer to a call.
pub enum CallAnswer {
    /// The tool is to be run.
    Run {
        /// The tool.
        tool: Arc<dyn Tool>,
        /// Its arguments, which its schema allows.
        arguments: Map<String, Value>,
    },
    /// The result of the same call before, with a note.
    Repeat {
        /// The tool.
        tool: Arc<dyn Tool>,
        /// The result.
        text: String,
    },
    /// A sentence on why the call cannot be run.
    Refuse(String),
}

/// Decides on a call. `tools`: those that are on. `done`: earlier calls of the answer that had a result.
pub fn answer_to<'a>(
    tools: &[Arc<dyn Tool>],
    call: MadeCall<'_>,
    mut done: impl Iterator<Item = (MadeCall<'a>, &'a str)>,
) -> CallAnswer {
    let mut found = tools.iter();
    let Some(tool) = found.find(|tool| tool.info().definition.name == call.name) else {
        let names = tools.iter().map(|tool| tool.info().definition.name.clone());
        let names: Vec<_> = names.collect();
        let (name, _) = call
            .name
            .split_at(call.name.floor_char_boundary(LONGEST_NAME));
        let there = if names.is_empty() {
            "No tool is on.".to_owned()
        } else {
            format!("There is: {}.", names.join(", "))
        };
        return CallAnswer::Refuse(format!("There is no tool “{name}”. {there}"));
    };
    let tool = Arc::clone(tool);
    let arguments = match check_arguments(&tool.info(), call.arguments) {
        Ok(arguments) => arguments,
        Err(error) => return CallAnswer::Refuse(error.to_string()),
    };
    match done.find(|(before, _)| same_call(*before, call)) {
        Some((_, result)) => CallAnswer::Repeat {
            tool,
            text: format!("{REPEATED}\n\n{result}"),
        },
        None => CallAnswer::Run { tool, arguments },
    }
}

/// Returns a result as a model is given it: without control characters, of at most this length, and never empty.
#[must_use]
pub fn given(result: &str, most_chars: usize) -> String {
    match capped(&without_controls(result), most_chars) {
        text if text.is_empty() => NOTHING.to_owned(),
        text => text,
    }
}

/// Returns the first `most_chars` characters of a text, with a note of how many were cut off.
fn capped(text: &str, most_chars: usize) -> String {
    match text.char_indices().nth(most_chars) {
        None => text.to_owned(),
        Some((end, _)) => {
            let (kept, cut) = text.split_at(end);
            let cut = count(cut.chars().count());
            format!("{kept}… ({cut} more characters were cut off)")
        }
    }
}

/// Returns whether two calls, each a name and its arguments, are the same: spaces and the order of the arguments do not
/// count.
fn same_call(one: MadeCall<'_>, other: MadeCall<'_>) -> bool {
    let arguments =
        |text: &str| serde_json::from_str::<Value>(text).map_err(|_| text.trim().to_owned());
    one.name == other.name && arguments(one.arguments) == arguments(other.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_says_so() {
        assert_eq!(capped("Grüße", 5), "Grüße");
        assert_eq!(capped("Grüße", 3), "Grü… (2 more characters were cut off)");
        let long = capped(&"a".repeat(2_000), 0);
        assert_eq!(long, "… (2,000 more characters were cut off)");
    }

    #[test]
    fn calls_are_the_same_by_name_and_arguments_however_these_are_written() {
        let call = |name, arguments| MadeCall { name, arguments };
        let first = call("f", r#"{"a": 1, "b": [2, 3]}"#);
        assert!(same_call(first, call("f", "{\"b\":[2,3],\n\"a\":1}")));
        assert!(!same_call(first, call("g", first.arguments)));
        assert!(!same_call(first, call("f", r#"{"a": 1, "b": [3, 2]}"#)));
        assert!(same_call(call("f", "{broken "), call("f", "{broken")));
        assert!(!same_call(call("f", "{broken"), call("f", "{}")));
    }

    #[test]
    fn a_result_is_given_as_text_that_hides_nothing() {
        assert_eq!(given("one\u{1b}[2J\ntwo", 100), "one[2J\ntwo");
        assert_eq!(given("\0", 100), NOTHING);
        assert_eq!(given("Grüße", 3), "Grü… (2 more characters were cut off)");
    }
}
