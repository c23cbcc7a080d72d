//! Vocabularies larger than that of any model, and texts longer than any context.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use engine::gguf::write::{self, Field};
use engine::{Gguf, ModelFile, Tokenizer};

use super::{child, in_child, said};
use crate::files::altered;
use crate::reference::fixture;

/// Writes the reason that the file of this process is refused; false if it is not a child.
fn refused_in_child() -> bool {
    let Some(path) = in_child() else {
        return false;
    };
    let error = ModelFile::open(&path).err().map(|error| error.to_string());
    fs::write(said(&path), error.unwrap_or_default()).expect("it is written");
    true
}

const TOKENS: &str = "tokenizer.ggml.tokens";

/// A file with a vocabulary of `count` empty texts, each eight bytes that take no room on a disk.
fn empty_texts(path: &Path, count: u64, key: &str) {
    let fields = [
        ("general.architecture", Field::String("smollm3".to_owned())),
        ("tokenizer.ggml.model", Field::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Field::String("smaug-bpe".to_owned())),
    ];
    let numbers = [
        "block_count",
        "embedding_length",
        "feed_forward_length",
        "attention.head_count",
        "context_length",
    ]
    .map(|key| (format!("smollm3.{key}"), Field::U32(64)));
    let numbers = numbers.iter().map(|(key, field)| {
        let field = match key.as_str() {
            "smollm3.attention.head_count" => Field::U32(2),
            _ => field.clone(),
        };
        (key.as_str(), field)
    });
    let eps = ("smollm3.attention.layer_norm_rms_epsilon", Field::F32(1e-6));
    // Without a token the size of the vocabulary is unknown.
    let token = (key != TOKENS).then(|| (TOKENS, Field::Strings(vec!["a".to_owned()])));
    let texts = (key, Field::Strings(Vec::new()));
    let fields: Vec<_> = fields
        .into_iter()
        .chain(numbers)
        .chain([eps])
        .chain(token)
        .chain([texts])
        .collect();
    let mut image = write::header(fields, &[]);
    // The array is the last field: its count is the last eight bytes before the padding.
    let texts = 9u32.to_le_bytes().into_iter().chain(8u32.to_le_bytes());
    let marker: Vec<u8> = key.bytes().chain(texts).collect();
    let at = image
        .windows(marker.len())
        .position(|bytes| bytes == marker);
    let at = at.expect("the array") + marker.len();
    image.truncate(at);
    image.extend(count.to_le_bytes());
    let mut file = File::create(path).expect("a file");
    file.write_all(&image).expect("it is written");
    file.set_len(image.len() as u64 + 8 * count + 64)
        .expect("a sparse file");
}

#[test]
fn lists_are_counted_before_they_are_decoded() {
    if refused_in_child() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("texts.gguf");
    for (key, count, expected) in [
        (
            "tokenizer.ggml.tokens",
            10_000_000,
            "10000000 entries where at most 1048576 belong",
        ),
        ("tokenizer.ggml.tokens", 50_000_000, "longer than 128 MB"),
        (
            "tokenizer.ggml.merges",
            10_000_000,
            "10000000 entries where at most 1048576 belong",
        ),
    ] {
        empty_texts(&path, count, key);
        let said = child(
            "vocabulary::lists_are_counted_before_they_are_decoded",
            &path,
            Some(500),
        );
        assert!(
            said.contains(expected),
            "`{said}` does not say `{expected}`"
        );
    }
}

#[test]
fn a_tokenizer_of_any_size_is_not_read() {
    if refused_in_child() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bare.gguf");
    let without = |key: &str, field| match key {
        // Another type is as good as no vocabulary.
        "tokenizer.ggml.tokens" => Field::U32(0),
        _ => field,
    };
    let altered = altered("tiny-q8_0", folder.path(), without, "");
    fs::rename(altered, &path).expect("it is renamed");
    let json = File::create(folder.path().join("tokenizer.json")).expect("a file");
    json.set_len(3 << 30).expect("a sparse file");
    let said = child(
        "vocabulary::a_tokenizer_of_any_size_is_not_read",
        &path,
        Some(500),
    );
    assert!(
        said.contains("tokenizer.json: it is longer than 64 MB"),
        "{said}"
    );
}

#[test]
fn a_long_text_takes_little_memory() {
    if let Some(path) = in_child() {
        let file = Gguf::open(&path).expect("the fixture");
        let tokenizer = Tokenizer::from_gguf(&file).expect("a vocabulary");
        // Words in English and in Russian, and one word, of six megabytes each.
        let same = ["some words, and 12 numbers ", "слово за слово ", "word"].map(|words| {
            let text = words.repeat((6 << 20) / words.len());
            tokenizer.decode(&tokenizer.encode(&text, false)) == text
        });
        fs::write(said(&path), format!("{same:?}")).expect("it is written");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tiny.gguf");
    fs::copy(fixture("tiny-q8_0.gguf"), &path).expect("it is copied");
    let said = child(
        "vocabulary::a_long_text_takes_little_memory",
        &path,
        Some(500),
    );
    assert_eq!(said, "[true, true, true]");
}
