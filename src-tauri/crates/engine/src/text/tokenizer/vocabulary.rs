//! Reading and validation of a vocabulary.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use tokenizers::models::bpe::Vocab;

use super::byte_alphabet::char_of;
use super::error::TokenizerError;
use super::split::WordSplit;
use crate::gguf::{Gguf, quote};

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS: &str = "tokenizer.ggml.bos_token_id";
const EOS: &str = "tokenizer.ggml.eos_token_id";
const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";

/// Far above every published vocabulary (262,144 tokens, 580,604 merges); keeps ids and tables small.
const MAX_TOKENS: usize = 1 << 20;
const MAX_MERGES: usize = 1 << 20;
/// Longest token in bytes.
const MAX_TOKEN_BYTES: usize = 1 << 12;
/// Longest special token in bytes, which is searched at every position of a prompt.
const MAX_SPECIAL_BYTES: usize = 1 << 7;

/// GGUF's type of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenType {
    /// Text, written in the byte-level alphabet.
    Normal,
    /// Structure of the protocol, such as the end of a turn.
    Control,
    /// Text that the model was trained on as one token, such as `<think>`.
    UserDefined,
    /// A placeholder.
    Unused,
}

/// A vocabulary as stored in a file.
pub(super) struct Vocabulary {
    pub(super) tokens: Vec<String>,
    pub(super) types: Vec<TokenType>,
    pub(super) merges: Vec<(String, String)>,
    pub(super) split: &'static WordSplit,
    /// True if a word that is a token becomes that token, without merges.
    pub(super) ignore_merges: bool,
    pub(super) bos: Option<u32>,
    pub(super) eos: Option<u32>,
    pub(super) add_bos: bool,
}

impl Vocabulary {
    pub(super) fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        // Counted before they are decoded: an entry takes eight bytes of a file, and many times that in memory.
        for (key, most) in [
            (TOKENS, MAX_TOKENS),
            (TYPES, MAX_TOKENS),
            (MERGES, MAX_MERGES),
        ] {
            check_count(key, file.array_len(key).unwrap_or(0), most)?;
        }
        let Some(tokens) = file.strings(TOKENS) else {
            return Self::from_sibling_json(file);
        };
        match file.str("tokenizer.ggml.model") {
            Some("gpt2") => {}
            other => return Err(TokenizerError::Model(quote(other.unwrap_or("(none)")))),
        }
        let name = file.str("tokenizer.ggml.pre").unwrap_or("(none)");
        let split = WordSplit::named(name).ok_or_else(|| TokenizerError::Split(quote(name)))?;
        let types = file.i32s(TYPES).ok_or(TokenizerError::NoTypes(TYPES))?;
        let types = types.into_iter().map(token_type).collect();
        let merges = file
            .strings(MERGES)
            .ok_or(TokenizerError::Missing(MERGES))?;
        Ok(Self {
            tokens: tokens.into_iter().map(str::to_owned).collect(),
            types,
            merges: merge_pairs(merges.into_iter())?,
            split,
            ignore_merges: split.ignore_merges,
            bos: file.u32(BOS),
            eos: file.u32(EOS),
            add_bos: file.bool(ADD_BOS).unwrap_or(false),
        })
    }

    /// The `tokenizer.json` in the folder of the model file.
    fn from_sibling_json(file: &Gguf) -> Result<Self, TokenizerError> {
        let path = file
            .path()
            .map(|path| path.with_file_name("tokenizer.json"));
        let Some(path) = path.filter(|path| path.is_file()) else {
            return Err(TokenizerError::Missing(TOKENS));
        };
        let json = read_json(&path).map_err(|error| TokenizerError::Json(error.to_string()))?;
        Ok(Self {
            bos: file.u32(BOS),
            eos: file.u32(EOS),
            add_bos: file.bool(ADD_BOS).unwrap_or(false),
            ..Self::from_json(&json)?
        })
    }

    pub(super) fn from_json(json: &[u8]) -> Result<Self, TokenizerError> {
        let file: TokenizerJson = serde_json::from_slice(json)
            .map_err(|error| TokenizerError::Json(error.to_string()))?;
        if file.model.ty != "BPE" {
            let problem = format!(
                "model `{}` is not supported (`BPE` is)",
                quote(&file.model.ty)
            );
            return Err(TokenizerError::Json(problem));
        }
        // Text is composed already, except by hand: as in llama.cpp, NFC is left out.
        if file
            .normalizer
            .is_some_and(|normalizer| !normalizer.is_null() && normalizer["type"] != "NFC")
        {
            return Err(TokenizerError::Json(
                "normalizers other than NFC are not supported".to_owned(),
            ));
        }
        let steps = file.pre_tokenizer["pretokenizers"].as_array();
        let splits_digits = steps.is_some_and(|steps| {
            let is_single = |step: &serde_json::Value| step["individual_digits"] == true;
            steps.iter().any(is_single)
        });
        let mentions = |text: &str| mentions(&file.pre_tokenizer, text);
        let split = WordSplit::mentioned(mentions, splits_digits).ok_or_else(|| {
            let known = WordSplit::known();
            TokenizerError::Json(format!("its pre-tokenizer is none of {known}"))
        })?;
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
        check_count(TOKENS, size, MAX_TOKENS)?;
        let (mut tokens, mut types) = (vec![String::new(); size], vec![TokenType::Unused; size]);
        for (text, id) in listed {
            tokens[id as usize] = text.to_owned();
            types[id as usize] = TokenType::Normal;
        }
        for token in &file.added_tokens {
            tokens[token.id as usize].clone_from(&token.content);
            types[token.id as usize] = if token.special {
                TokenType::Control
            } else {
                TokenType::UserDefined
            };
        }
        Ok(Self {
            tokens,
            types,
            merges: match file.model.merges {
                BpeMerges::Pairs(pairs) => pairs,
                BpeMerges::Joined(joined) => merge_pairs(joined.iter().map(String::as_str))?,
            },
            split,
            ignore_merges: file.model.ignore_merges,
            bos: None,
            eos: None,
            add_bos: false,
        })
    }

    /// Each token with its id and type.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &str, TokenType)> {
        (0..)
            .zip(&self.tokens)
            .zip(&self.types)
            .map(|((id, token), &ty)| (id, &**token, ty))
    }

    /// The tokens of the encoder: the normal ones; of duplicates the first.
    pub(super) fn normal_tokens(&self) -> Vocab {
        let mut ids = Vocab::with_capacity(self.tokens.len());
        for (id, token, ty) in self.iter() {
            if ty == TokenType::Normal {
                ids.entry(token.to_owned()).or_insert(id);
            }
        }
        ids
    }

    /// Checks the implicit requirements of the encoder; returns the token of each byte. SmolLM2 has none for some control
    /// characters, which its encoder leaves out.
    pub(super) fn check(
        &self,
        normal_tokens: &Vocab,
    ) -> Result<Box<[Option<u32>; 256]>, TokenizerError> {
        check_count(TOKENS, self.tokens.len(), MAX_TOKENS)?;
        check_count(MERGES, self.merges.len(), MAX_MERGES)?;
        if self.types.len() != self.tokens.len() {
            let (expected, found) = (self.tokens.len().to_string(), self.types.len());
            return Err(TokenizerError::Count {
                key: TYPES,
                expected,
                found,
            });
        }
        let token_error = |id: u32, problem| TokenizerError::Token { id, problem };
        let longest = |ty| match ty {
            TokenType::Control | TokenType::UserDefined => MAX_SPECIAL_BYTES,
            TokenType::Normal | TokenType::Unused => MAX_TOKEN_BYTES,
        };
        if let Some((id, ..)) = self
            .iter()
            .find(|&(_, token, ty)| token.len() > longest(ty))
        {
            return Err(token_error(id, "is absurdly long"));
        }
        let named = self.bos.into_iter().chain(self.eos);
        if let Some(id) = named
            .into_iter()
            .find(|&id| id as usize >= self.tokens.len())
        {
            return Err(token_error(
                id,
                "begins or ends texts, but is not in the vocabulary",
            ));
        }
        // The encoder joins the two parts of a merge in a buffer of the length of the longest token.
        let longest = normal_tokens.keys().map(String::len).max().unwrap_or(0);
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
        let mut bytes = Box::new([None; 256]);
        for byte in 0..=u8::MAX {
            let id = normal_tokens.get(&char_of(byte).to_string()).copied();
            let is_text = byte.is_ascii_graphic() || byte.is_ascii_whitespace();
            if id.is_none() && is_text {
                return Err(TokenizerError::Byte(byte));
            }
            bytes[usize::from(byte)] = id;
        }
        Ok(bytes)
    }
}

/// The bytes of a `tokenizer.json`. The longest published ones take 33 MB.
fn read_json(path: &Path) -> io::Result<Vec<u8>> {
    const LONGEST: u64 = 64 << 20;
    let mut json = Vec::new();
    // The length in the folder's entry may be wrong.
    File::open(path)?.take(LONGEST + 1).read_to_end(&mut json)?;
    if json.len() as u64 > LONGEST {
        let message = format!("it is longer than {} MB", LONGEST >> 20);
        return Err(io::Error::other(message));
    }
    Ok(json)
}

/// GGUF's token types; unknown ones are normal.
fn token_type(number: i32) -> TokenType {
    match number {
        2 | 3 => TokenType::Control,
        4 => TokenType::UserDefined,
        5 => TokenType::Unused,
        _ => TokenType::Normal,
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

/// Merges are written as two parts with one space between them.
fn merge_pairs<'a>(
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

/// Returns true if `json` has the string `text` at any depth.
fn mentions(json: &serde_json::Value, text: &str) -> bool {
    match json {
        serde_json::Value::String(found) => found == text,
        serde_json::Value::Array(items) => items.iter().any(|item| mentions(item, text)),
        serde_json::Value::Object(fields) => fields.values().any(|field| mentions(field, text)),
        _ => false,
    }
}

/// The used parts of a `tokenizer.json`.
#[derive(Deserialize)]
struct TokenizerJson {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    normalizer: Option<serde_json::Value>,
    #[serde(default)]
    pre_tokenizer: serde_json::Value,
    model: BpeModel,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct BpeModel {
    #[serde(rename = "type")]
    ty: String,
    vocab: HashMap<String, u32>,
    merges: BpeMerges,
    #[serde(default)]
    ignore_merges: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BpeMerges {
    Pairs(Vec<(String, String)>),
    Joined(Vec<String>),
}
