//! Templates whose text is known to be harmless, by its SHA-256.

use sha2::{Digest, Sha256};

use super::error::MAX_SOURCE_BYTES;
use crate::text::protocol::Protocol;

/// The protocol of a known template, and whether its text may run in this process. White space at its end does not matter:
/// converters add or drop it.
pub(super) fn protocol_of(source: &str) -> Option<(&'static Protocol, bool)> {
    if source.len() > MAX_SOURCE_BYTES {
        return None;
    }
    Protocol::of_published(&sha256(source))
}

/// In lower-case hexadecimal digits.
fn sha256(source: &str) -> String {
    let digest = Sha256::digest(source.trim_end());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(source: &str) -> bool {
        protocol_of(source).is_some()
    }

    /// When this fails because the demo model's template has changed: put its new hash into [`Protocol`]'s table.
    #[test]
    fn the_demo_models_template_is_known() {
        let source = include_str!("../../../../../../models/demo/template.jinja");
        assert!(is_known(source), "its hash is {}", sha256(source));
        assert!(is_known(source.trim_end()));
        assert!(!is_known(&source.replacen("messages", "messages ", 1)));
        assert!(!is_known(&format!(
            "{source}{}",
            " ".repeat(MAX_SOURCE_BYTES)
        )));
        assert!(!is_known(""));
    }
}
