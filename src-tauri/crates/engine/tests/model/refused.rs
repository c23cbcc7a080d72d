//! Files of a supported architecture that are not for chats: each is refused by the key that says so.

use std::sync::Arc;

use engine::gguf::write::{self, Field};
use engine::{Gguf, ModelFile};

use crate::reference::fixture;

/// Opens the tiny model with other metadata.
fn open(
    change: &dyn Fn(&str, Field) -> Field,
    more: &[(&str, Field)],
) -> Result<ModelFile, String> {
    let gguf = Gguf::open(&fixture("tiny-q4_k_m.gguf")).expect("the fixture");
    let fields = gguf
        .keys()
        .filter(|key| !more.iter().any(|(other, _)| other == key))
        .filter_map(|key| Some((key, change(key, Field::from_value(&gguf.get(key)?)?))));
    let fields = fields.chain(more.iter().cloned());
    let header = Gguf::from_bytes(write::header(fields, &[])).expect("a header");
    ModelFile::from_parts(&header, Arc::new(gguf)).map_err(|error| error.to_string())
}

fn text(text: &str) -> Field {
    Field::String(text.to_owned())
}

#[test]
fn a_vocabulary_that_the_model_does_not_have_is_refused() {
    assert!(open(&|_, field| field, &[]).is_ok());
    let longer = |key: &str, field| match (key, field) {
        ("tokenizer.ggml.tokens", Field::Strings(mut tokens)) => {
            tokens.extend((0..8).map(|at| format!("more{at}")));
            Field::Strings(tokens)
        }
        ("tokenizer.ggml.token_type", Field::I32s(mut types)) => {
            types.extend([1; 8]);
            Field::I32s(types)
        }
        (_, field) => field,
    };
    let refused = open(&longer, &[]).map(|_| ()).expect_err("refused");
    assert!(refused.contains("token_embd.weight"), "{refused}");

    let renamed = |key: &str, field| match (key, field) {
        ("tokenizer.ggml.tokens", Field::Strings(tokens)) => {
            let rename = |token: String| token.replace("<|im_start|>", "<|begin|>");
            Field::Strings(tokens.into_iter().map(rename).collect())
        }
        (_, field) => field,
    };
    let refused = open(&renamed, &[]).map(|_| ()).expect_err("refused");
    assert!(refused.contains("`tokenizer.ggml.tokens`"), "{refused}");
    assert!(refused.contains("SmolLM3, ChatML"), "{refused}");
}

#[test]
fn a_tokenizer_or_a_template_of_another_kind_is_refused_by_its_key() {
    let long = "x".repeat(1 << 20);
    for (key, value, words) in [
        ("tokenizer.ggml.pre", "dbrx", "`dbrx` is not supported"),
        ("tokenizer.ggml.pre", "\u{1b}[31m", "is not supported"),
        ("tokenizer.ggml.model", "llama", "`llama` is not supported"),
        ("tokenizer.chat_template", &long, "1,048,576 bytes"),
    ] {
        let refused = open(&|_, field| field, &[(key, text(value))]);
        let refused = refused.map(|_| ()).expect_err("refused");
        assert!(refused.contains(&format!("`{key}`")), "{refused}");
        assert!(refused.contains(words), "{refused}");
        assert!(
            refused.len() < 500 && !refused.contains('\u{1b}'),
            "{refused:?}"
        );
    }
    for harmless in ["", "{% if", "[INST] {{ x }}"] {
        let template = ("tokenizer.chat_template", text(harmless));
        assert!(open(&|_, field| field, &[template]).is_ok(), "{harmless}");
    }
}
