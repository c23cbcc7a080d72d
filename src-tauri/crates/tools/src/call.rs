//! Rules for the calls of an answer, which every loop of calls obeys.

use figures::count;
use serde_json::Value;

/// Note with which the result of a call is repeated, instead of running the tool again.
pub const REPEATED: &str =
    "This call was made before with the same arguments; its result is repeated.";

/// Returns the first `most_chars` characters of a text, with a note of how many were cut off.
#[must_use]
pub fn capped(text: &str, most_chars: usize) -> String {
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
#[must_use]
pub fn same_call(one: (&str, &str), other: (&str, &str)) -> bool {
    let arguments =
        |text: &str| serde_json::from_str::<Value>(text).map_err(|_| text.trim().to_owned());
    one.0 == other.0 && arguments(one.1) == arguments(other.1)
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
        let call = ("f", r#"{"a": 1, "b": [2, 3]}"#);
        assert!(same_call(call, ("f", "{\"b\":[2,3],\n\"a\":1}")));
        assert!(!same_call(call, ("g", call.1)));
        assert!(!same_call(call, ("f", r#"{"a": 1, "b": [3, 2]}"#)));
        assert!(same_call(("f", "{broken "), ("f", "{broken")));
        assert!(!same_call(("f", "{broken"), ("f", "{}")));
    }
}
