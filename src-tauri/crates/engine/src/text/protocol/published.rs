//! Published templates, by their SHA-256.

use sha2::{Digest, Sha256};

use super::chatml::CHAT_ML;
use super::format::Protocol;
use super::llama3::LLAMA_3;
use super::qwen2::QWEN_2;
use super::qwen3::QWEN_3;
use super::smollm3::SMOLLM3_CHAT;

/// SHA-256 of published templates, without white space at their end. Those with `true` are harmless and run as they are;
/// the others are replaced by Goldcrest's.
const PUBLISHED: [(&str, &Protocol, bool); 7] = [
    // SmolLM3-3B of Hugging Face.
    (
        "3982464ecf49b0b38514fec4a5c22273fe70b7259480735bf13e225e4b64bec2",
        &SMOLLM3_CHAT,
        true,
    ),
    // SmolLM3-3B of unsloth.
    (
        "cbc1d50f777ec029b33f53b23d7a224cceb65bcc8c7fac54946dbb56514e4d1e",
        &SMOLLM3_CHAT,
        true,
    ),
    // The tiny model of the tests: tests/fixtures/tiny-smollm3.jinja.
    (
        "12863db63e4bb19ee1429c4d024c2bb91761316bb7806ffc24823830c58788ca",
        &SMOLLM3_CHAT,
        true,
    ),
    // SmolLM2-Instruct.
    (
        "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788",
        &CHAT_ML,
        true,
    ),
    // Qwen 2.5-Instruct.
    (
        "55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a",
        &QWEN_2,
        true,
    ),
    // Qwen 3. It writes an empty thinking before an answer that is continued.
    (
        "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5",
        &QWEN_3,
        false,
    ),
    // Llama 3.2-Instruct.
    (
        "d82792f95932f1c9cef5c4bd992f171225e3bf8c7b609b4557c9e1ec96be819f",
        &LLAMA_3,
        true,
    ),
];

/// The format of a published template; true if its text may run. White space at its end does not matter: converters add
/// or drop it.
pub(super) fn protocol_of(source: &str) -> Option<(&'static Protocol, bool)> {
    let digest = sha256(source);
    let found = PUBLISHED.iter().find(|(hash, ..)| *hash == digest)?;
    Some((found.1, found.2))
}

/// SHA-256 in lower-case hexadecimal digits.
fn sha256(source: &str) -> String {
    let digest = Sha256::digest(source.trim_end());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the tiny model's template has changed, put its new hash into the table.
    #[test]
    fn the_tiny_models_template_is_known() {
        let source = include_str!("../../../tests/fixtures/tiny-smollm3.jinja");
        let is_known = |source: &str| protocol_of(source).is_some();
        assert!(is_known(source), "its hash is {}", sha256(source));
        assert!(is_known(source.trim_end()));
        assert!(!is_known(&source.replacen("messages", "messages ", 1)));
        assert!(!is_known(""));
    }
}
