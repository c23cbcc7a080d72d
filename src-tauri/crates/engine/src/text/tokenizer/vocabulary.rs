//! Reading a vocabulary and making sure that it can be used.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use tokenizers::models::bpe::Vocab;

use super::byte_alphabet::char_of;
use super::error::TokenizerError;
use crate::gguf::{Gguf, quote};

/// Llama 3's split into words: `smaug-bpe` and `llama-bpe` are two names for it.
pub(super) const SPLIT: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const SPLIT_NAMES: [&str; 4] = ["smaug-bpe", "llama-bpe", "llama3", "llama-v3"];

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";

/// Far above every published vocabulary (262,144 tokens, 580,604 merges); keeps ids and tables small.
const MOST_TOKENS: usize = 1 << 20;
const MOST_MERGES: usize = 1 << 20;
/// Words of the language, not files.
const LONGEST_TOKEN: usize = 1 << 12;
/// Tags, whose beginnings are looked for everywhere in a prompt.
const LONGEST_SPECIAL: usize = 1 << 7;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text, written in the byte-level alphabet.
    Ordinary,
    /// Structure of the protocol, such as the end of a turn.
    Control,
    /// Text that the model was taught as one token, such as `<think>`.
    Tag,
    /// A placeholder that stands for nothing.
    Unused,
}

/// A vocabulary as a file gives it.
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    pub(super) merges: Vec<(String, String)>,
    /// A word that is a token stays whole, whatever the merges make of it.
    pub(super) whole_words: bool,
    pub(super) begin: Option<u32>,
    pub(super) end: Option<u32>,
    pub(super) starts_with_begin: bool,
}

impl Vocabulary {
    pub(super) fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        // Counted before they are decoded: an entry takes eight bytes of a file, and many times that in memory.
        for (key, most) in [
            (TOKENS, MOST_TOKENS),
            (TYPES, MOST_TOKENS),
            (MERGES, MOST_MERGES),
        ] {
            check_count(key, file.array_len(key).unwrap_or(0), most)?;
        }
        let Some(tokens) = file.strings(TOKENS) else {
            return Self::beside(file);
        };
        match file.str("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => return Err(TokenizerError::Model(quote(other.unwrap_or("(none)")))),
        }
        match file.str("tokenizer.ggml.pre") {
            Some(name) if SPLIT_NAMES.contains(&name) => {}
            other => return Err(TokenizerError::Split(quote(other.unwrap_or("(none)")))),
        }
        let kinds = match file.i32s(TYPES) {
            Some(types) => types.into_iter().map(kind_of_type).collect(),
            None => vec![Kind::Ordinary; tokens.len()],
        };
        let merges = file
            .strings(MERGES)
            .ok_or(TokenizerError::Missing(MERGES))?;
        Ok(Self {
            tokens: tokens.into_iter().map(str::to_owned).collect(),
            kinds,
            merges: pairs(merges.into_iter())?,
            whole_words: true,
            ..Self::boundaries(file)
        })
    }

    /// The `tokenizer.json` in the folder of the model file.
    fn beside(file: &Gguf) -> Result<Self, TokenizerError> {
        let path = file
            .path()
            .map(|path| path.with_file_name("tokenizer.json"));
        let Some(path) = path.filter(|path| path.is_file()) else {
            return Err(TokenizerError::Missing(TOKENS));
        };
        let json = read_json(&path).map_err(|error| TokenizerError::Json(error.to_string()))?;
        let Self {
            begin,
            end,
            starts_with_begin,
            ..
        } = Self::boundaries(file);
        Ok(Self {
            begin,
            end,
            starts_with_begin,
            ..Self::from_json(&json)?
        })
    }

    /// An empty vocabulary with the begin and the end of text that the metadata name.
    fn boundaries(file: &Gguf) -> Self {
        Self {
            tokens: Vec::new(),
            kinds: Vec::new(),
            merges: Vec::new(),
            whole_words: true,
            begin: file.u32("tokenizer.ggml.bos_token_id"),
            end: file.u32("tokenizer.ggml.eos_token_id"),
            starts_with_begin: file.bool("tokenizer.ggml.add_bos_token").unwrap_or(false),
        }
    }

    pub(super) fn from_json(json: &[u8]) -> Result<Self, TokenizerError> {
        let file: Json = serde_json::from_slice(json)
            .map_err(|error| TokenizerError::Json(error.to_string()))?;
        if file.model.kind != "BPE" {
            return Err(TokenizerError::Model(quote(&file.model.kind)));
        }
        if file
            .normalizer
            .is_some_and(|normalizer| !normalizer.is_null())
        {
            return Err(TokenizerError::Json(
                "normalizers are not supported".to_owned(),
            ));
        }
        if !contains(&file.pre_tokenizer, SPLIT) || !contains(&file.pre_tokenizer, "ByteLevel") {
            return Err(TokenizerError::Split("of tokenizer.json".to_owned()));
        }
        let added = file
            .added_tokens
            .iter()
            .map(|token| (token.content.as_str(), token.id));
        let listed = file
            .model
            .vocab
            .iter()
            .map(|(text, &id)| (text.as_str(), id));
        let size = added
            .clone()
            .chain(listed.clone())
            .map(|(_, id)| id as usize + 1)
            .max();
        let size = size.unwrap_or(0);
        check_count(TOKENS, size, MOST_TOKENS)?;
        let (mut tokens, mut kinds) = (vec![String::new(); size], vec![Kind::Unused; size]);
        for (text, id) in listed {
            tokens[id as usize] = text.to_owned();
            kinds[id as usize] = Kind::Ordinary;
        }
        for token in &file.added_tokens {
            tokens[token.id as usize].clone_from(&token.content);
            kinds[token.id as usize] = if token.special {
                Kind::Control
            } else {
                Kind::Tag
            };
        }
        Ok(Self {
            tokens,
            kinds,
            merges: match file.model.merges {
                Merges::Pairs(pairs) => pairs,
                Merges::Joined(joined) => pairs(joined.iter().map(String::as_str))?,
            },
            whole_words: file.model.ignore_merges,
            begin: None,
            end: None,
            starts_with_begin: false,
        })
    }

    /// Each token with its id and kind.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &str, Kind)> {
        (0..)
            .zip(&self.tokens)
            .zip(&self.kinds)
            .map(|((id, token), &kind)| (id, &**token, kind))
    }

    /// The tokens that the encoder may make: the ordinary ones. Of two equal ones the first.
    pub(super) fn ordinary(&self) -> Vocab {
        let mut ids = Vocab::with_capacity(self.tokens.len());
        for (id, token, kind) in self.iter() {
            if kind == Kind::Ordinary {
                ids.entry(token.to_owned()).or_insert(id);
            }
        }
        ids
    }

    /// Makes sure of what the encoder relies on without saying so; gives the token of each byte.
    pub(super) fn check(&self, ordinary: &Vocab) -> Result<Box<[u32; 256]>, TokenizerError> {
        check_count(TOKENS, self.tokens.len(), MOST_TOKENS)?;
        check_count(MERGES, self.merges.len(), MOST_MERGES)?;
        if self.kinds.len() != self.tokens.len() {
            let (expected, found) = (self.tokens.len().to_string(), self.kinds.len());
            return Err(TokenizerError::Count {
                key: TYPES,
                expected,
                found,
            });
        }
        let token_error = |id: u32, problem| TokenizerError::Token { id, problem };
        let longest = |kind| match kind {
            Kind::Control | Kind::Tag => LONGEST_SPECIAL,
            Kind::Ordinary | Kind::Unused => LONGEST_TOKEN,
        };
        if let Some((id, ..)) = self
            .iter()
            .find(|&(_, token, kind)| token.len() > longest(kind))
        {
            return Err(token_error(id, "is absurdly long"));
        }
        let named = self.begin.into_iter().chain(self.end);
        if let Some(id) = named
            .into_iter()
            .find(|&id| id as usize >= self.tokens.len())
        {
            return Err(token_error(
                id,
                "begins or ends texts, but is not in the vocabulary",
            ));
        }
        // The encoder joins the halves of a merge in a buffer as long as the longest token.
        let longest = ordinary.keys().map(String::len).max().unwrap_or(0);
        for (index, (left, right)) in self.merges.iter().enumerate() {
            if left.len() + right.len() > longest {
                let merge = quote(&format!("{left} {right}"));
                return Err(TokenizerError::Merge {
                    index,
                    merge,
                    problem: "makes no token",
                });
            }
        }
        let mut bytes = Box::new([0; 256]);
        for byte in 0..=u8::MAX {
            let token = char_of(byte).to_string();
            let id = ordinary.get(&token).ok_or(TokenizerError::Byte(byte))?;
            bytes[usize::from(byte)] = *id;
        }
        Ok(bytes)
    }
}

/// The bytes of a `tokenizer.json`. The longest published ones take 33 MB.
fn read_json(path: &Path) -> io::Result<Vec<u8>> {
    const LONGEST: u64 = 64 << 20;
    let mut json = Vec::new();
    // Whatever the folder says of its length, no more than that is read.
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut json)?;
    if json.len() as u64 > LONGEST {
        let message = format!("it is longer than {} MB", LONGEST >> 20);
        return Err(io::Error::other(message));
    }
    Ok(json)
}

/// GGUF's token types; what the format does not name is taken as ordinary.
fn kind_of_type(number: i32) -> Kind {
    match number {
        2 | 3 => Kind::Control,
        4 => Kind::Tag,
        5 => Kind::Unused,
        _ => Kind::Ordinary,
    }
}

fn check_count(key: &'static str, found: usize, most: usize) -> Result<(), TokenizerError> {
    if found > most {
        return Err(TokenizerError::Count {
            key,
            expected: format!("at most {most}"),
            found,
        });
    }
    Ok(())
}

/// Merges are written with one space between their halves.
fn pairs<'a>(
    merges: impl Iterator<Item = &'a str>,
) -> Result<Vec<(String, String)>, TokenizerError> {
    merges
        .enumerate()
        .map(|(index, merge)| match merge.split_once(' ') {
            Some((left, right)) => Ok((left.to_owned(), right.to_owned())),
            None => Err(TokenizerError::Merge {
                index,
                merge: quote(merge),
                problem: "is no pair",
            }),
        })
        .collect()
}

/// Whether `text` stands anywhere in `json`.
fn contains(json: &serde_json::Value, text: &str) -> bool {
    match json {
        serde_json::Value::String(found) => found == text,
        serde_json::Value::Array(items) => items.iter().any(|item| contains(item, text)),
        serde_json::Value::Object(fields) => fields.values().any(|field| contains(field, text)),
        _ => false,
    }
}

/// The parts of a `tokenizer.json` that matter here.
#[derive(Deserialize)]
struct Json {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<serde_json::Value>,
    #[serde(default)]
    pre_tokenizer: serde_json::Value,
    model: Model,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: String,
    vocab: HashMap<String, u32>,
    merges: Merges,
    #[serde(default)]
    ignore_merges: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merges {
    Pairs(Vec<(String, String)>),
    Joined(Vec<String>),
}
