//! Special tokens: control tokens and the tags that the model was taught as single tokens.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::vocabulary::{TokenType, Vocabulary};

/// The special tokens of a vocabulary, found by text.
pub(crate) struct Specials {
    ids: HashMap<String, u32>,
    /// Sorted.
    texts: Vec<String>,
    /// Characters that begin a special token's text.
    starts: Vec<char>,
    /// Characters that end a special token's text.
    ends: Vec<char>,
    control: HashSet<u32>,
}

impl Specials {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let (mut ids, mut control) = (HashMap::new(), HashSet::new());
        for (id, token, ty) in vocabulary.iter() {
            if ty == TokenType::Control {
                control.insert(id);
            }
            if matches!(ty, TokenType::Control | TokenType::UserDefined) && !token.is_empty() {
                ids.entry(token.to_owned()).or_insert(id);
            }
        }
        let mut texts: Vec<String> = ids.keys().cloned().collect();
        texts.sort_unstable();
        let starts = sorted(texts.iter().filter_map(|text| text.chars().next()));
        let ends = sorted(texts.iter().filter_map(|text| text.chars().next_back()));
        Self {
            ids,
            texts,
            starts,
            ends,
            control,
        }
    }

    /// Control tokens with these texts.
    #[cfg(test)]
    pub(crate) fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let tokens: Vec<String> = texts.map(str::to_owned).collect();
        Self::new(&Vocabulary {
            types: vec![TokenType::Control; tokens.len()],
            tokens,
            merges: Vec::new(),
            split: super::split::WordSplit::named("llama-bpe").expect("known"),
            ignore_merges: true,
            bos: None,
            eos: None,
            add_bos: false,
        })
    }

    /// The token with exactly this text.
    pub(crate) fn id(&self, text: &str) -> Option<u32> {
        self.ids.get(text).copied()
    }

    pub(crate) fn is_control(&self, id: u32) -> bool {
        self.control.contains(&id)
    }

    /// Characters that begin a special token's text, sorted.
    pub(crate) fn starts(&self) -> &[char] {
        &self.starts
    }

    /// Characters that end a special token's text, sorted.
    pub(crate) fn ends(&self) -> &[char] {
        &self.ends
    }

    /// Returns true if `text` is part of a special token's text.
    pub(crate) fn contain(&self, text: &str) -> bool {
        self.texts.iter().any(|special| special.contains(text))
    }

    /// The first special token in `text`, the longest if several begin there.
    pub(crate) fn find(&self, text: &str) -> Option<(Range<usize>, u32)> {
        text.match_indices(|c| self.starts.binary_search(&c).is_ok())
            .find_map(|(at, _)| {
                let (length, id) = self.starting(&text[at..])?;
                Some((at..at + length, id))
            })
    }

    /// The longest special token that `text` begins with: its length in bytes and its id.
    pub(crate) fn starting(&self, text: &str) -> Option<(usize, u32)> {
        // Texts that begin with the same bytes are neighbours, and the one that ends there is the first of them.
        let (mut same, mut found) = (&self.texts[..], None);
        for (at, byte) in text.bytes().enumerate() {
            let next = |special: &String| special.as_bytes().get(at).copied();
            let first = same.partition_point(|special| next(special) < Some(byte));
            let behind = same.partition_point(|special| next(special) <= Some(byte));
            same = &same[first..behind];
            let Some(shortest) = same.first() else {
                break;
            };
            if shortest.len() == at + 1 {
                found = Some(shortest);
            }
        }
        found.map(|special| (special.len(), self.ids[special]))
    }
}

/// Sorted, without duplicates.
fn sorted(characters: impl Iterator<Item = char>) -> Vec<char> {
    let mut characters: Vec<char> = characters.collect();
    characters.sort_unstable();
    characters.dedup();
    characters
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_longest_special_token_is_found_among_its_prefixes() {
        let texts = ["<", "<a", "<ab>", "<abc>", "<b", "x<", "é<", "é"].map(str::to_owned);
        let specials = Specials::of_texts(texts.iter().map(String::as_str));
        for (text, expected) in [
            ("<abc>", Some("<abc>")),
            ("<abc", Some("<a")),
            ("<abd>", Some("<a")),
            ("<ab>d", Some("<ab>")),
            ("<c", Some("<")),
            ("<", Some("<")),
            ("<é", Some("<")),
            ("é<<", Some("é<")),
            ("éa", Some("é")),
            ("è", None),
            ("a<", None),
            ("", None),
        ] {
            let found = specials.starting(text).map(|(length, id)| {
                assert_eq!(texts[id as usize].len(), length);
                &*texts[id as usize]
            });
            assert_eq!(found, expected, "{text:?}");
        }
        assert_eq!(specials.find("yx<abc>"), Some((1..3, 5)));
        assert_eq!(specials.find("y"), None);
    }

    #[test]
    fn the_search_does_not_slow_down_with_the_number_of_special_tokens() {
        // One text in seven differs in its first character, all others in their last.
        let texts: Vec<String> = (0..500_000u32)
            .map(|n| match n % 7 {
                0 => format!(
                    "{}|special",
                    char::from_u32(0x1_0000 + n / 7).unwrap_or('x')
                ),
                _ => format!("<|special_{n}|>"),
            })
            .collect();
        let specials = Specials::of_texts(texts.iter().map(String::as_str));
        let text = "<|special_0|> 𐀀 ".repeat(10_000);
        let started = Instant::now();
        assert_eq!(specials.find(&text), None);
        // A search for each of them at each position would take minutes.
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            started.elapsed()
        );
    }
}
