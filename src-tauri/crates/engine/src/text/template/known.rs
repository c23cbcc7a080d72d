//! Templates whose text is known to be harmless, by its SHA-256.

use sha2::{Digest, Sha256};

use super::error::MAX_SOURCE_BYTES;

/// SHA-256 of the known texts, without white space at their end.
const KNOWN: [&str; 3] = [
    // SmolLM3-3B as published by Hugging Face.
    "3982464ecf49b0b38514fec4a5c22273fe70b7259480735bf13e225e4b64bec2",
    // SmolLM3-3B as published by unsloth.
    "cbc1d50f777ec029b33f53b23d7a224cceb65bcc8c7fac54946dbb56514e4d1e",
    // The demo model: models/demo/template.jinja.
    "362bba9deb20958f6ca518c9c137519aa4a9d0a1707769c7a5806c1bd4cd4acd",
];

/// Whether this is the text of a known template. White space at its end does not matter: converters add or drop it.
pub(super) fn is_known(source: &str) -> bool {
    source.len() <= MAX_SOURCE_BYTES && KNOWN.contains(&sha256(source).as_str())
}

/// In lower-case hexadecimal digits.
fn sha256(source: &str) -> String {
    let digest = Sha256::digest(source.trim_end());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When this fails because the demo model's template has changed: put its new hash above.
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
