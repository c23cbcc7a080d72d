//! Text to token ids and back, with the vocabulary of the GGUF file.
//!
//! Byte-level BPE. Special tokens are not part of the BPE vocabulary: they are matched separately,
//! and only on request, so that normal text never becomes one.

mod byte_alphabet;
mod error;
mod pieces;
mod specials;
mod split;
mod text_chunks;
mod vocabulary;

use std::sync::atomic::{AtomicBool, Ordering};

use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::gguf::Gguf;
use crate::text::protocol::{Protocol, THINK_TAGS};
pub use error::TokenizerError;
pub use pieces::Decoder;
use pieces::Pieces;
pub(crate) use specials::Specials;
use split::WordSplit;
use vocabulary::{TokenType, Vocabulary};

/// A model's vocabulary with everything needed to encode and decode.
pub struct Tokenizer {
    bpe: tokenizers::Tokenizer,
    split: &'static WordSplit,
    pieces: Pieces,
    specials: Specials,
    /// Token of each byte, for the encoder's byte fallback.
    bytes: Box<[Option<u32>; 256]>,
    turn_ends: Vec<u32>,
    think_tags: [Option<u32>; 2],
    suppressed: Vec<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    add_bos: bool,
}

impl Tokenizer {
    /// The tokenizer of a model file: from its metadata, or from the `tokenizer.json` beside it
    /// when the metadata hold no vocabulary.
    ///
    /// # Errors
    /// Names the unusable key, token or merge.
    pub fn from_gguf(file: &Gguf) -> Result<Self, TokenizerError> {
        Self::new(Vocabulary::from_gguf(file)?)
    }

    /// The tokenizer of a `tokenizer.json` in the format of the tokenizers library.
    ///
    /// # Errors
    /// Fails if it is not byte-level BPE with a known split, or is damaged.
    pub fn from_json(json: &[u8]) -> Result<Self, TokenizerError> {
        Self::new(Vocabulary::from_json(json)?)
    }

    fn new(vocabulary: Vocabulary) -> Result<Self, TokenizerError> {
        let normal = vocabulary.normal_tokens();
        let bytes = vocabulary.check(&normal)?;
        let pieces = Pieces::new(&vocabulary);
        let specials = Specials::new(&vocabulary);
        let mut turn_ends: Vec<u32> = vocabulary
            .eos
            .into_iter()
            .chain(Protocol::all().flat_map(|it| it.ends).filter_map(|text| {
                specials
                    .id(text)
                    .filter(|&id| vocabulary.types[id as usize] == TokenType::Control)
            }))
            .collect();
        let mut seen = std::collections::HashSet::new();
        turn_ends.retain(|id| seen.insert(*id));
        let think_tags = THINK_TAGS.map(|tag| specials.id(tag));
        let suppressed = vocabulary
            .iter()
            .filter(|&(_, _, ty)| matches!(ty, TokenType::Control | TokenType::Unused))
            .map(|(id, ..)| id)
            .filter(|id| !turn_ends.contains(id) && !think_tags.contains(&Some(*id)))
            .collect();
        let (bos, eos) = (vocabulary.bos, vocabulary.eos);
        let add_bos = vocabulary.add_bos;
        let encoder = |error: tokenizers::Error| TokenizerError::Encoder(error.to_string());
        let model = BPE::builder()
            .ignore_merges(vocabulary.ignore_merges)
            .vocab_and_merges(normal, vocabulary.merges)
            .build()
            .map_err(encoder)?;
        let split = vocabulary.split;
        let mut steps = Vec::new();
        for pattern in split.patterns {
            let pattern = SplitPattern::Regex((*pattern).to_owned());
            let step = Split::new(pattern, SplitDelimiterBehavior::Isolated, false);
            steps.push(PreTokenizerWrapper::Split(step.map_err(encoder)?));
        }
        steps.push(PreTokenizerWrapper::ByteLevel(ByteLevel::new(
            false, false, false,
        )));
        let mut bpe = tokenizers::Tokenizer::new(model);
        bpe.with_pre_tokenizer(Some(Sequence::new(steps)));
        Ok(Self {
            bpe,
            split,
            pieces,
            specials,
            bytes,
            turn_ends,
            think_tags,
            suppressed,
            bos,
            eos,
            add_bos,
        })
    }

    /// Encodes `text`. With `parse_special`, the texts of special tokens in it become those
    /// tokens; without, all of it is normal text.
    #[must_use]
    pub fn encode(&self, text: &str, parse_special: bool) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut rest = text;
        while parse_special && let Some((at, special)) = self.specials.find(rest) {
            self.encode_ordinary(&rest[..at.start], &mut ids);
            ids.push(special);
            rest = &rest[at.end..];
        }
        self.encode_ordinary(rest, &mut ids);
        ids
    }

    /// Appends the ids of `text`, none of them special.
    pub(crate) fn encode_ordinary(&self, text: &str, ids: &mut Vec<u32>) {
        let _complete = self.encode_cancellable(text, ids, &AtomicBool::new(false));
    }

    /// Encodes like [`Tokenizer::encode_ordinary`], polling `cancel` before each chunk of text. Returns false when
    /// cancelled; `ids` then lacks the rest.
    #[must_use]
    pub(crate) fn encode_cancellable(
        &self,
        text: &str,
        ids: &mut Vec<u32>,
        cancel: &AtomicBool,
    ) -> bool {
        // The encoder allocates more than a hundred bytes per byte of its input.
        let (size, longest) = (text_chunks::CHUNK_BYTES, text_chunks::MAX_CHUNK_BYTES);
        for chunk in text_chunks::chunks(text, self.split, size, longest) {
            if cancel.load(Ordering::Relaxed) {
                return false;
            }
            self.encode_whole(chunk, ids);
        }
        true
    }

    /// Appends the ids of `text`, encoded at once.
    fn encode_whole(&self, text: &str, ids: &mut Vec<u32>) {
        match self.bpe.encode_fast(text, false) {
            Ok(encoding) => ids.extend_from_slice(encoding.get_ids()),
            // The error quotes the text, which must not be logged.
            Err(_) => {
                tracing::warn!("text encoded byte by byte");
                ids.extend(
                    text.bytes()
                        .filter_map(|byte| self.bytes[usize::from(byte)]),
                );
            }
        }
    }

    /// The text of `ids`; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        let mut decoder = Decoder::default();
        let mut text = String::new();
        for &id in ids {
            text.push_str(decoder.push(self.piece(id)));
        }
        text.push_str(decoder.finish());
        text
    }

    /// A decoder for the ids after `ids`: an incomplete character at their end, as when an answer
    /// was stopped inside of it, is completed by the next ids.
    #[must_use]
    pub fn decoder_after(&self, ids: &[u32]) -> Decoder {
        /// An unfinished character has three bytes at most.
        const LONGEST_TAIL: usize = 3;
        let mut decoder = Decoder::default();
        for &id in &ids[ids.len().saturating_sub(LONGEST_TAIL)..] {
            decoder.push(self.piece(id));
        }
        decoder
    }

    /// The bytes of a token; empty for an id outside of the vocabulary.
    #[must_use]
    pub fn piece(&self, id: u32) -> &[u8] {
        self.pieces.get(id)
    }

    /// The special token (control or user-defined) with this text.
    #[must_use]
    pub fn special(&self, text: &str) -> Option<u32> {
        self.specials.id(text)
    }

    /// Returns true if `id` is a control token: structure, never part of the displayed text.
    #[must_use]
    pub fn is_control(&self, id: u32) -> bool {
        self.specials.is_control(id)
    }

    /// Returns true if `id` is a special token, control or user-defined.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        let text = std::str::from_utf8(self.piece(id));
        text.is_ok_and(|text| self.specials.id(text) == Some(id))
    }

    /// The tokens that end the model's turn.
    #[must_use]
    pub fn turn_ends(&self) -> &[u32] {
        &self.turn_ends
    }

    /// The tags before and after the thinking.
    pub(crate) fn think_tags(&self) -> [Option<u32>; 2] {
        self.think_tags
    }

    /// Tokens that are invalid in an answer, in ascending order: control tokens except the ends of turns and the tags
    /// around thinking, and unused tokens.
    #[must_use]
    pub fn suppressed(&self) -> &[u32] {
        &self.suppressed
    }

    /// The BOS token, if prompts begin with it.
    #[must_use]
    pub fn prompt_start(&self) -> Option<u32> {
        self.bos.filter(|_| self.add_bos)
    }

    /// Bytes of the longest token.
    #[must_use]
    pub fn longest_token(&self) -> usize {
        self.pieces.longest()
    }

    /// Number of ids in the vocabulary.
    #[must_use]
    pub fn vocabulary_size(&self) -> usize {
        self.pieces.len()
    }

    /// Name of the split into words, as `tokenizer.ggml.pre` has it.
    pub fn split_name(&self) -> &'static str {
        self.split.names[0]
    }

    pub(crate) fn specials(&self) -> &Specials {
        &self.specials
    }

    /// Texts of the BOS and the EOS token, variables of templates.
    pub(crate) fn boundary_texts(&self) -> [String; 2] {
        [self.bos, self.eos].map(|id| id.map(|id| self.decode(&[id])).unwrap_or_default())
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("tokens", &self.pieces.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn tiny() -> Tokenizer {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let file = Gguf::open(&path).expect("the fixture is committed");
        Tokenizer::from_gguf(&file).expect("its vocabulary is good")
    }

    /// The tiny vocabulary with each pre-tokeniser.
    fn with_each_split() -> Vec<Tokenizer> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
        let file = Gguf::open(&path).expect("the fixture is committed");
        let names = ["llama-bpe", "qwen2", "smollm", "gpt-2"];
        names
            .map(|name| {
                let vocabulary = Vocabulary::from_gguf(&file).expect("its vocabulary is good");
                let split = WordSplit::named(name).expect("known");
                Tokenizer::new(Vocabulary {
                    split,
                    ignore_merges: split.ignore_merges,
                    ..vocabulary
                })
                .expect("it encodes")
            })
            .into()
    }

    #[test]
    fn chunks_of_text_encode_to_the_same_tokens() {
        let tokenizers = with_each_split();
        let parts = [
            "a",
            "Wort",
            "don't",
            "'s",
            "'ll",
            "'LL",
            "\u{17f}",
            "12",
            "7",
            "1234",
            " ",
            "  ",
            "\t",
            "\n",
            "\r\n",
            "\n\n",
            " \n ",
            "!",
            "?!",
            "...",
            "-",
            "(",
            "é",
            "e\u{301}",
            "ß",
            "слово",
            "ж",
            "한국",
            "ไทย",
            "\u{301}",
            "中文",
            "，",
            "。",
            "かな",
            "・",
            "٣",
            "Ⅷ",
            "ⓐ",
            "\u{a0}",
            "\u{3000}",
            "\u{85}",
            "\u{1c}",
            "\u{180e}",
            "\u{feff}",
            "\u{200b}",
            "🦀",
            "<|im_end|>",
        ];
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below as u64) as usize
        };
        let mut cuts = 0;
        for _ in 0..3_000 {
            let text: String = (0..1 + random(24))
                .map(|_| parts[random(parts.len())])
                .collect();
            let size = 1 + random(12);
            for tokenizer in &tokenizers {
                let (mut whole, mut pieced) = (Vec::new(), Vec::new());
                tokenizer.encode_whole(&text, &mut whole);
                let split = tokenizer.split;
                let pieces: Vec<&str> =
                    text_chunks::chunks(&text, split, size, usize::MAX).collect();
                assert_eq!(pieces.concat(), text);
                for piece in &pieces {
                    tokenizer.encode_whole(piece, &mut pieced);
                }
                assert_eq!(whole, pieced, "{text:?} cut into {pieces:?} by {split:?}");
                cuts += pieces.len() - 1;
            }
        }
        assert!(cuts > 12_000, "{cuts} cuts are too few to show anything");
    }

    #[test]
    fn text_of_any_script_has_a_boundary_at_every_space() {
        for text in [
            "слово за слово ",
            "한국어 문장 ",
            "ภาษา ไทย ",
            "née ",
            "؟ سلام ",
        ] {
            let text = text.repeat(1_000);
            let split = WordSplit::named("gpt-2").expect("known");
            let pieces = text_chunks::chunks(&text, split, 100, usize::MAX);
            let longest = pieces.map(str::len).max();
            assert!(longest.is_some_and(|longest| longest <= 100), "{text:.20}");
        }
    }

    #[test]
    fn a_word_of_any_length_is_split() {
        for word in ["a", "ж", "한", "=", " ", "\u{301}"] {
            let text = word.repeat(1 << 20);
            let mut pieces = Vec::new();
            pieces.extend(text_chunks::chunks(
                &text,
                tiny().split,
                text_chunks::CHUNK_BYTES,
                text_chunks::MAX_CHUNK_BYTES,
            ));
            assert_eq!(pieces.concat(), text);
            let fits = |piece: &&str| piece.len() <= text_chunks::MAX_CHUNK_BYTES;
            assert!(pieces.iter().all(fits), "{word:?}");
            assert!(pieces.len() <= 1 + text.len() / (text_chunks::MAX_CHUNK_BYTES - 3));
        }
        let tokenizer = tiny();
        let text = "ж".repeat(text_chunks::MAX_CHUNK_BYTES);
        assert_eq!(tokenizer.decode(&tokenizer.encode(&text, false)), text);
    }

    #[test]
    fn cancel_stops_the_encoding_of_a_long_text() {
        let tokenizer = tiny();
        let text = "some words and 12 numbers\n".repeat(20_000);
        let (mut ids, cancel) = (Vec::new(), AtomicBool::new(true));
        assert!(!tokenizer.encode_cancellable(&text, &mut ids, &cancel));
        assert!(ids.is_empty());
        assert!(tokenizer.encode_cancellable(&text, &mut ids, &AtomicBool::new(false)));
        assert_eq!(tokenizer.decode(&ids), text);
    }

    #[test]
    fn no_token_is_longer_than_the_longest() {
        let tokenizer = tiny();
        let lengths = (0..tokenizer.vocabulary_size() as u32).map(|id| tokenizer.piece(id).len());
        assert_eq!(lengths.max(), Some(tokenizer.longest_token()));
    }
}
