//! Cost of holding an answer to a form, with a vocabulary as large as SmolLM3's.

use std::sync::Arc;

use engine::gguf::write::{Field, header};
use engine::{FormCost, GenerateError, Gguf, Tokenizer};
use serde::Serialize;
use serde_json::json;

use crate::synthetic::byte_characters;

/// SmolLM3's vocabulary.
pub(crate) const VOCABULARY: usize = 128_256;

/// Cost of holding an answer to a form, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FormReport {
    /// The trie of the vocabulary, once per model.
    pub trie_ms: f64,
    /// A form, once per request.
    pub compile_ms: f64,
    /// The mask of a token: the median.
    pub mask_ms: f64,
    /// The mask of the dearest token.
    pub longest_mask_ms: f64,
}

/// Measures the masks of an answer of JSON.
pub(crate) fn form_report() -> Result<FormReport, GenerateError> {
    let unusable = |error: &dyn std::fmt::Display| GenerateError::Form(error.to_string());
    let file = Gguf::from_bytes(vocabulary()).map_err(|error| unusable(&error))?;
    let tokenizer = Tokenizer::from_gguf(&file).map_err(|error| unusable(&error))?;
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 30}},
            "note": {"type": ["string", "null"], "maxLength": 80},
            "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
        },
        "required": ["city", "unit", "days", "note", "code"],
    });
    let answer = "{\"city\": \"Bern, on the river Aare\", \"unit\": \"celsius\", \"days\": [1, 12, 30], \
                  \"note\": \"It may rain in the evening.\", \"code\": \"CH-3000\"}";
    let cost = FormCost::measure(Arc::new(tokenizer), &schema, answer)?;
    Ok(FormReport {
        trie_ms: 1e3 * cost.trie_s,
        compile_ms: 1e3 * cost.compile_s,
        mask_ms: 1e3 * cost.mask_s,
        longest_mask_ms: 1e3 * cost.longest_mask_s,
    })
}

/// A header with a token for each byte, and words of two to five syllables, with and without a space before them.
fn vocabulary() -> Vec<u8> {
    const SYLLABLES: [&str; 20] = [
        "an", "be", "cor", "da", "el", "fi", "gus", "hin", "io", "ka", "le", "mor", "ni", "op",
        "ra", "sti", "tur", "un", "ve", "\"x",
    ];
    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    let mut tokens: Vec<String> = byte_characters().map(String::from).collect();
    for n in 0.. {
        if tokens.len() + 2 > VOCABULARY {
            break;
        }
        let (mut word, mut rest) = (String::from(if n % 2 == 0 { "Ġ" } else { "" }), n / 2 + 20);
        while rest > 0 {
            word.push_str(SYLLABLES[rest % SYLLABLES.len()]);
            rest /= SYLLABLES.len();
        }
        tokens.push(word);
    }
    tokens.extend(["<|im_start|>", "<|im_end|>"].map(str::to_owned));
    let mut types = vec![NORMAL; tokens.len()];
    let controls = tokens.len() - 2;
    types[controls..].fill(CONTROL);
    let text = |text: &str| Field::String(text.to_owned());
    let fields = [
        ("general.architecture", text("smollm3")),
        ("tokenizer.ggml.model", text("gpt2")),
        ("tokenizer.ggml.pre", text("smaug-bpe")),
        ("tokenizer.ggml.tokens", Field::Strings(tokens)),
        ("tokenizer.ggml.token_type", Field::I32s(types)),
        ("tokenizer.ggml.merges", Field::Strings(Vec::new())),
    ];
    header(fields, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_of_the_answer_has_a_mask_that_allows_it() {
        let report = form_report().expect("the answer has its schema");
        assert!(report.trie_ms > 0.0 && report.mask_ms > 0.0);
        assert!(report.longest_mask_ms >= report.mask_ms);
    }
}
