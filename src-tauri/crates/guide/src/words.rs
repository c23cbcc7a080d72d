//! Words of a text, and the features by which texts are compared.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Splits a text into lower-case words. Apostrophes are left out, and all other signs separate words.
pub fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for character in text.chars().flat_map(char::to_lowercase) {
        if character.is_alphanumeric() {
            words.last_mut().expect("never empty").push(character);
        } else if !matches!(character, '\'' | '’') {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether each typed word begins a word of the text; the last one may be unfinished.
pub fn begin(text: &str, typed: &str) -> bool {
    let (text, typed) = (words(text), words(typed));
    let is_there = |typed: &String| text.iter().any(|word| word.starts_with(typed.as_str()));
    !typed.is_empty() && typed.iter().all(is_there)
}

/// Words and phrases that mean much the same here, by line: a word that stands for all, a colon, and the others; `|` joins
/// the words of a phrase.
const SYNONYMS: &str = include_str!("../../../guide/wordings/synonyms.txt");

/// Maximum words of a phrase in [`SYNONYMS`].
const PHRASE: usize = 3;

/// The word that stands for each phrase.
static STANDS_FOR: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let lines = SYNONYMS.lines().filter_map(|line| line.split_once(':'));
    let pairs = lines.flat_map(|(word, others)| {
        let others = others.split_whitespace().map(move |other| (other, word));
        others.chain([(word, word)])
    });
    pairs
        .map(|(phrase, word)| (phrase.replace('|', " "), word))
        .collect()
});

/// Replaces words and phrases by those that stand for them.
fn standardised(words: &[String]) -> Vec<&str> {
    let mut standardised = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let longest = PHRASE.min(words.len() - at);
        let found = (1..=longest).rev().find_map(|length| {
            let phrase = words[at..at + length].join(" ");
            STANDS_FOR.get(&phrase).map(|standard| (length, *standard))
        });
        let (length, standard) = found.unwrap_or((1, word));
        standardised.push(standard);
        at += length;
    }
    standardised
}

/// Returns the hash of each word, of what stands for it, and of each pair of neighbours, without repetitions.
pub fn terms(words: &[String]) -> Vec<WordTerm> {
    let standard = standardised(words);
    let single = |word: &str| WordTerm {
        hash: hash(&[b"w", word.as_bytes()]),
        words: 1,
    };
    let pairs = standard.windows(2).map(|pair| WordTerm {
        hash: hash(&[b"p", pair[0].as_bytes(), b" ", pair[1].as_bytes()]),
        words: 2,
    });
    let classes = standard.iter().map(|word| WordTerm {
        hash: hash(&[b"s", word.as_bytes()]),
        words: 1,
    });
    let mut terms: Vec<WordTerm> = words
        .iter()
        .map(|word| single(word))
        .chain(classes)
        .chain(pairs)
        .collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// A word, or two neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WordTerm {
    pub hash: u64,
    /// 1 or 2.
    pub words: u8,
}

/// Returns the hashes of the terms and of all runs of three characters in a word and its borders, without repetitions.
pub fn features(words: &[String]) -> Vec<u64> {
    let mut features: Vec<u64> = terms(words).iter().map(|term| term.hash).collect();
    let mut characters = Vec::new();
    for word in words {
        characters.clear();
        characters.push(' ');
        characters.extend(word.chars());
        characters.push(' ');
        for run in characters.windows(3) {
            let mut bytes = [0; 12];
            for (place, character) in bytes.chunks_exact_mut(4).zip(run) {
                place.copy_from_slice(&u32::from(*character).to_le_bytes());
            }
            features.push(hash(&[b"c", &bytes]));
        }
    }
    features.sort_unstable();
    features.dedup();
    features
}

/// Hashes bytes by FNV-1a: fast for short texts, and the same in every run.
pub fn hash(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().copied().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_signs_and_not_at_apostrophes() {
        assert_eq!(
            words("Don't press Ctrl+N,\u{1b}please!"),
            ["dont", "press", "ctrl", "n", "please"]
        );
        assert!(words(" \t\u{0} …").is_empty());
    }

    #[test]
    fn the_last_typed_word_may_be_unfinished() {
        assert!(begin("Delete a chat", "del"));
        assert!(begin("Delete a chat", "chat DEL"));
        assert!(!begin("Delete a chat", "elete"));
        assert!(!begin("Delete a chat", ""));
    }
}
