//! The tokenizer against reference ids, against itself, and against damaged vocabularies.
//!
//! `fixtures/tokenizer.gguf` holds the metadata of a tiny vocabulary (525 tokens, no tensors, no
//! template) and `fixtures/tokenizer-cases.json` texts with the ids that the tokenizers library
//! gives them, special tokens parsed.

use std::path::Path;

use engine::gguf::write::{self, Field};
use engine::{Decoder, Gguf, Tokenizer, TokenizerError};

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

fn tiny() -> Tokenizer {
    let file = Gguf::open(&fixture("tokenizer.gguf")).expect("fixture");
    Tokenizer::from_gguf(&file).expect("tokenizer")
}

fn cases() -> Vec<(String, Vec<u32>)> {
    let json = std::fs::read_to_string(fixture("tokenizer-cases.json")).expect("fixture");
    let cases: Vec<serde_json::Value> = serde_json::from_str(&json).expect("cases");
    cases
        .iter()
        .map(|case| {
            let ids = case["ids"].as_array().expect("ids").iter();
            let ids = ids.map(|id| u32::try_from(id.as_u64().expect("id")).expect("id"));
            (
                case["text"].as_str().expect("text").to_owned(),
                ids.collect(),
            )
        })
        .collect()
}

#[test]
fn reference_cases() {
    let tokenizer = tiny();
    let cases = cases();
    assert_eq!(cases.len(), 102);
    for (text, ids) in cases {
        assert_eq!(tokenizer.encode(&text, true), ids, "{text:?}");
        assert_eq!(tokenizer.decode(&ids), text);
    }
}

#[test]
fn special_tokens_only_on_request() {
    let tokenizer = tiny();
    let think = tokenizer.special("<think>").expect("a tag");
    let end = tokenizer.special("<|im_end|>").expect("a control token");
    assert_eq!(tokenizer.encode("a<think>b<|im_end|>", true)[1], think);
    assert!(tokenizer.is_control(end) && !tokenizer.is_control(think));
    assert_eq!(tokenizer.turn_ends().first(), Some(&end));
    assert_eq!(tokenizer.special("<|nothing|>"), None);

    let text = "a<think>b<|im_end|>";
    let plain = tokenizer.encode(text, false);
    assert!(plain.iter().all(|&id| id < 512), "{plain:?}");
    assert_eq!(tokenizer.decode(&plain), text);
}

#[test]
fn long_and_odd_texts_round_trip() {
    let tokenizer = tiny();
    let texts = [
        " ".repeat(100_000) + "x",
        "a".repeat(100_000),
        "\n \n".repeat(20_000),
        "\u{0}\u{7f}\u{fdd0}\u{e000}\u{10ffff}\u{feff}".repeat(100),
        "<".repeat(10_000),
    ];
    for text in texts {
        let ids = tokenizer.encode(&text, true);
        assert_eq!(
            tokenizer.decode(&ids),
            text,
            "{:?}…",
            text.chars().take(8).collect::<String>()
        );
    }
}

#[test]
fn a_character_cut_by_a_stop_comes_whole_afterwards() {
    let tokenizer = tiny();
    let ids = tokenizer.encode("ok 🙂!", false);
    for stop in 0..=ids.len() {
        let mut before = Decoder::default();
        let mut text: String = ids[..stop]
            .iter()
            .map(|&id| before.push(tokenizer.piece(id)).to_owned())
            .collect();
        let mut after = tokenizer.decoder_after(&ids[..stop]);
        text.extend(
            ids[stop..]
                .iter()
                .map(|&id| after.push(tokenizer.piece(id)).to_owned()),
        );
        assert_eq!(text, "ok 🙂!", "stopped after {stop} tokens");
    }
}

/// A vocabulary of the 256 bytes, some letters joined, and one control token.
fn fields() -> Vec<(&'static str, Field)> {
    let strings = |texts: &[&str]| Field::Strings(texts.iter().map(|&t| t.to_owned()).collect());
    let mut tokens: Vec<String> = byte_alphabet().into_iter().map(String::from).collect();
    tokens.extend(["ab", "abc", "<|end|>"].map(str::to_owned));
    let mut types = vec![1; tokens.len()];
    types[258] = 3;
    vec![
        ("tokenizer.ggml.model", Field::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Field::String("llama-bpe".to_owned())),
        ("tokenizer.ggml.tokens", Field::Strings(tokens)),
        ("tokenizer.ggml.token_type", Field::I32s(types)),
        ("tokenizer.ggml.merges", strings(&["a b", "ab c"])),
        ("tokenizer.ggml.eos_token_id", Field::U32(258)),
    ]
}

/// The characters that stand for the bytes 0 to 255.
fn byte_alphabet() -> Vec<char> {
    let shown = |byte: &u32| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let mut next = 0x100;
    (0..256)
        .map(|byte| {
            let code = if shown(&byte) {
                byte
            } else {
                next += 1;
                next - 1
            };
            char::from_u32(code).expect("a character")
        })
        .collect()
}

fn load(fields: Vec<(&'static str, Field)>) -> Result<Tokenizer, TokenizerError> {
    let file = Gguf::from_bytes(write::header(fields, &[])).expect("a GGUF");
    Tokenizer::from_gguf(&file)
}

/// The error of a vocabulary with one field replaced, or taken away.
fn error_with(key: &'static str, value: Option<Field>) -> String {
    let mut fields = fields();
    fields.retain(|(name, _)| *name != key);
    fields.extend(value.map(|value| (key, value)));
    load(fields).expect_err(key).to_string()
}

#[test]
fn a_small_vocabulary_works() {
    let tokenizer = load(fields()).expect("tokenizer");
    assert_eq!(
        tokenizer.encode("abcab a<|end|>", true),
        [257, 256, 32, 97, 258]
    );
    assert_eq!(tokenizer.vocabulary_size(), 259);
    assert_eq!(tokenizer.turn_ends(), [258]);
    assert_eq!(tokenizer.prompt_start(), None);
}

#[test]
fn a_word_that_is_a_token_stays_whole() {
    let mut fields = fields();
    fields.retain(|(key, _)| *key != "tokenizer.ggml.merges");
    let merges = Field::Strings(vec!["a b".to_owned()]);
    fields.push(("tokenizer.ggml.merges", merges));
    let tokenizer = load(fields).expect("tokenizer");
    // No merge makes it.
    assert_eq!(tokenizer.encode("abc abcd", true)[0], 257);
    assert_eq!(tokenizer.encode("abcd", true), [256, 99, 100]);
}

#[test]
fn of_two_equal_tokens_the_first_is_made() {
    let mut fields = fields();
    for (_, field) in &mut fields {
        match field {
            Field::Strings(tokens) if tokens.len() > 256 => tokens.push("abc".to_owned()),
            Field::I32s(types) => types.push(1),
            _ => {}
        }
    }
    let tokenizer = load(fields).expect("tokenizer");
    assert_eq!(tokenizer.encode("abcab", true), [257, 256]);
    assert_eq!(tokenizer.decode(&[257, 259]), "abcabc");
}

#[test]
fn an_answer_holds_no_control_tokens_but_its_end_and_the_think_tags() {
    let extra = [
        ("<|im_start|>", 3),
        ("<|im_end|>", 3),
        ("<|end_of_text|>", 3),
        ("<|pad|>", 3),
        ("<think>", 3),
        ("</think>", 4),
        ("<tool_call>", 4),
        ("[unused]", 5),
        ("<unk>", 2),
    ];
    let mut fields = fields();
    for (_, field) in &mut fields {
        match field {
            Field::Strings(tokens) if tokens.len() > 256 => {
                tokens.extend(extra.map(|(text, _)| text.to_owned()));
            }
            Field::I32s(types) => types.extend(extra.map(|(_, kind)| kind)),
            // The one that ends text, which is not the one that ends turns.
            Field::U32(end) => *end = 261,
            _ => {}
        }
    }
    let tokenizer = load(fields).expect("tokenizer");
    assert_eq!(tokenizer.turn_ends(), [261, 260]);
    // `<|end|>`, `<|im_start|>`, `<|pad|>`, `[unused]`, `<unk>`
    assert_eq!(tokenizer.suppressed(), [258, 259, 262, 266, 267]);
}

#[test]
fn damaged_vocabularies_are_errors_that_name_the_fault() {
    let text = |text: &str| Some(Field::String(text.to_owned()));
    let strings = |texts: &[&str]| {
        Some(Field::Strings(
            texts.iter().map(|&text| text.to_owned()).collect(),
        ))
    };
    let cases = [
        ("tokenizer.ggml.model", text("llama"), "`llama`"),
        ("tokenizer.ggml.model", None, "`(none)`"),
        ("tokenizer.ggml.pre", text("deepseek-llm"), "`deepseek-llm`"),
        ("tokenizer.ggml.tokens", None, "`tokenizer.ggml.tokens`"),
        (
            "tokenizer.ggml.token_type",
            None,
            "control tokens (`tokenizer.ggml.token_type`)",
        ),
        (
            "tokenizer.ggml.tokens",
            strings(&["a"]),
            "`tokenizer.ggml.token_type` has 259",
        ),
        (
            "tokenizer.ggml.token_type",
            Some(Field::I32s(vec![1])),
            "has 1 entries where 259",
        ),
        (
            "tokenizer.ggml.token_type",
            Some(Field::I32s(vec![5; 259])),
            "merge 0 (`a b`) makes no token",
        ),
        (
            "tokenizer.ggml.merges",
            strings(&["a b", "abc"]),
            "merge 1 (`abc`) is no pair",
        ),
        (
            "tokenizer.ggml.merges",
            strings(&["a x"]),
            "`ax` out of vocabulary",
        ),
        (
            "tokenizer.ggml.merges",
            strings(&["b a"]),
            "`ba` out of vocabulary",
        ),
        ("tokenizer.ggml.merges", None, "`tokenizer.ggml.merges`"),
        (
            "tokenizer.ggml.eos_token_id",
            Some(Field::U32(259)),
            "token 259 begins or ends",
        ),
    ];
    for (key, value, expected) in cases {
        let message = error_with(key, value);
        assert!(message.contains(expected), "{key}: {message}");
    }
    for (length, refused) in [(128, false), (129, true)] {
        let special = format!("<{}>", "x".repeat(length - 2));
        let tokens = byte_alphabet().into_iter().map(String::from);
        let tokens = tokens.chain(["ab".to_owned(), "abc".to_owned(), special]);
        let mut fields = fields();
        fields.retain(|(key, _)| *key != "tokenizer.ggml.tokens");
        fields.push(("tokenizer.ggml.tokens", Field::Strings(tokens.collect())));
        let error = load(fields).err().map(|error| error.to_string());
        let long = error.is_some_and(|error| error.contains("token 258 is absurdly long"));
        assert_eq!(long, refused, "a control token of {length} bytes");
    }
}

#[test]
fn a_control_character_without_a_token_is_left_out_and_a_letter_is_an_error() {
    let without = |missing: u8| {
        let alphabet = byte_alphabet().into_iter().enumerate();
        let bytes: Vec<String> = alphabet
            .filter(|&(byte, _)| byte != usize::from(missing))
            .map(|(_, token)| token.to_string())
            .collect();
        let types = vec![1; bytes.len()];
        let replaced = [
            ("tokenizer.ggml.tokens", Field::Strings(bytes)),
            ("tokenizer.ggml.token_type", Field::I32s(types)),
            ("tokenizer.ggml.merges", Field::Strings(Vec::new())),
        ];
        let mut fields = fields();
        fields.retain(|(key, _)| {
            *key != "tokenizer.ggml.eos_token_id" && !replaced.iter().any(|(other, _)| key == other)
        });
        fields.extend(replaced);
        load(fields)
    };
    let tokenizer = without(4).expect("SmolLM2 has no token for it");
    assert_eq!(tokenizer.decode(&tokenizer.encode("a\u{4}b", false)), "ab");
    let message = without(b'a').expect_err("a byte is missing").to_string();
    assert!(message.contains("byte 0x61"), "{message}");
}

#[test]
fn tokenizer_json_beside_the_model() {
    let tokens: Vec<String> = byte_alphabet().into_iter().map(String::from).collect();
    let mut vocab: serde_json::Map<String, serde_json::Value> = (0..)
        .zip(tokens)
        .map(|(id, token)| (token, serde_json::Value::from(id)))
        .collect();
    vocab.insert("ab".to_owned(), 256.into());
    let split = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let json = |merges: serde_json::Value| {
        serde_json::json!({
            "normalizer": null,
            "added_tokens": [{"id": 257, "content": "<|im_end|>", "special": true}],
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": split}, "behavior": "Isolated"},
                {"type": "ByteLevel", "use_regex": false},
            ]},
            "model": {"type": "BPE", "vocab": vocab, "merges": merges},
        })
        .to_string()
    };
    for merges in [serde_json::json!(["a b"]), serde_json::json!([["a", "b"]])] {
        let folder = tempfile::tempdir().expect("folder");
        let model = folder.path().join("model.gguf");
        let fields = [("tokenizer.ggml.eos_token_id", Field::U32(257))];
        std::fs::write(&model, write::header(fields, &[])).expect("model");
        std::fs::write(folder.path().join("tokenizer.json"), json(merges)).expect("json");
        let file = Gguf::open(&model).expect("GGUF");
        let tokenizer = Tokenizer::from_gguf(&file).expect("tokenizer");
        assert_eq!(tokenizer.encode("ab a<|im_end|>", true), [256, 32, 97, 257]);
        assert_eq!(tokenizer.turn_ends(), [257]);
    }
    let mut known: serde_json::Value =
        serde_json::from_str(&json(serde_json::json!(["a b"]))).expect("JSON");
    known["model"]["vocab"]["abc"] = 258.into();
    for (ignores, expected) in [(true, vec![258]), (false, vec![256, 99])] {
        known["model"]["ignore_merges"] = ignores.into();
        let tokenizer = Tokenizer::from_json(known.to_string().as_bytes()).expect("tokenizer");
        assert_eq!(tokenizer.encode("abc", false), expected, "{ignores}");
    }
    let foreign = json(serde_json::json!([])).replace("{1,3}", "+");
    assert!(matches!(
        Tokenizer::from_json(foreign.as_bytes()),
        Err(TokenizerError::Json(_))
    ));
    assert!(matches!(
        Tokenizer::from_json(b"{"),
        Err(TokenizerError::Json(_))
    ));
}
