//! Length limits of texts that users write.

use crate::failure::{Failure, FailureCode};

/// Maximum bytes of a message or a draft.
pub const MAX_TEXT: usize = 4_000_000;

/// Refuses a text that no model could read, by its bytes, before its content is looked at.
pub(crate) fn refuse_too_large(text: &str) -> Result<(), Failure> {
    refuse_too_large_together([text.len()])
}

/// Refuses texts that are stored together, by the sum of their bytes.
pub(crate) fn refuse_too_large_together(
    bytes: impl IntoIterator<Item = usize>,
) -> Result<(), Failure> {
    let bytes: usize = bytes.into_iter().sum();
    if bytes <= MAX_TEXT {
        return Ok(());
    }
    let megabytes = bytes as f64 / 1e6;
    Err(Failure::new(
        FailureCode::TooLong,
        format!(
            "This text is too long: it has {megabytes:.1} MB, and a message has at most {} MB. \
             Shorten it, or send it in parts.",
            MAX_TEXT / 1_000_000
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        assert_eq!(refuse_too_large(&"x".repeat(MAX_TEXT)), Ok(()));
        let refused = refuse_too_large(&"x".repeat(MAX_TEXT + 100_000));
        let refused = refused.map_err(|failure| (failure.code, failure.message));
        assert!(
            matches!(&refused, Err((FailureCode::TooLong, message)) if message.contains("4.1 MB, and a message has at most 4 MB")),
            "{refused:?}"
        );
    }
}
