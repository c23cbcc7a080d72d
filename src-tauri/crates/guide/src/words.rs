//! Words of a text, and the features by which texts are compared.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// Splits a text into lower-case words. Apostrophes are left out, and all other signs separate words.
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['\'', '’'], "");
    let words = text.split(|character: char| !character.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
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

/// A phrase of [`SYNONYMS`] behind its first word, and the word that stands for it.
struct Synonym {
    rest: Vec<&'static str>,
    standard: &'static str,
}

/// Synonyms by their first word, the longest first.
static BY_FIRST_WORD: LazyLock<HashMap<&'static str, Vec<Synonym>>> = LazyLock::new(|| {
    let mut synonyms: HashMap<_, Vec<Synonym>> = HashMap::new();
    for (standard, others) in SYNONYMS.lines().filter_map(|line| line.split_once(':')) {
        for phrase in others.split_whitespace().chain([standard]) {
            let mut words = phrase.split('|');
            let first = words.next().unwrap_or_default();
            let rest = words.collect();
            synonyms
                .entry(first)
                .or_default()
                .push(Synonym { rest, standard });
        }
    }
    for of_word in synonyms.values_mut() {
        of_word.sort_by_key(|synonym| Reverse(synonym.rest.len()));
    }
    synonyms
});

/// Replaces words and phrases by those that stand for them.
fn standardised(words: &[String]) -> Vec<&str> {
    let mut standardised = Vec::new();
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let mut synonyms = BY_FIRST_WORD.get(word.as_str()).into_iter().flatten();
        let found = synonyms.find(|synonym| {
            let begins = behind.get(..synonym.rest.len());
            begins.is_some_and(|begins| begins == synonym.rest)
        });
        standardised.push(found.map_or(word.as_str(), |synonym| synonym.standard));
        rest = &behind[found.map_or(0, |synonym| synonym.rest.len())..];
    }
    standardised
}

/// Returns the hash of each word, of what stands for it, and of each pair of neighbours, without repetitions.
pub fn terms(words: &[String]) -> Vec<u64> {
    let standard = standardised(words);
    let single = words.iter().map(|word| hash(&[b"word ", word.as_bytes()]));
    let stands = standard
        .iter()
        .map(|word| hash(&[b"standard ", word.as_bytes()]));
    let pairs = standard
        .windows(2)
        .map(|pair| hash(&[b"pair ", pair[0].as_bytes(), b" ", pair[1].as_bytes()]));
    let mut terms: Vec<u64> = single.chain(stands).chain(pairs).collect();
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// Returns the terms, and the hashes of all runs of three characters in a word and its borders, without repetitions.
pub fn features(words: &[String], terms: &[u64]) -> Vec<u64> {
    let mut features = terms.to_vec();
    for word in words {
        let (mut before, mut last) = ('\0', ' ');
        for character in word.chars().chain([' ']) {
            if before != '\0' {
                features.push(run(before, last, character));
            }
            (before, last) = (last, character);
        }
    }
    features.sort_unstable();
    features.dedup();
    features
}

/// A map by hashes of [`hash`], which it takes as they are.
pub type ByHash<V> = HashMap<u64, V, BuildHasherDefault<AsItIs>>;

/// Hasher of a key that is a hash.
#[derive(Default)]
pub struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are u64");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Hashes a run of three characters, of 21 bits each, by a multiplication and a rotation.
fn run(first: char, second: char, third: char) -> u64 {
    let bits = [first, second, third].map(|character| u64::from(u32::from(character)));
    let packed = bits[0] << 42 | bits[1] << 21 | bits[2];
    packed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
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
    use std::collections::HashSet;

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
    fn each_synonym_stands_in_one_line() {
        let mut seen = HashSet::new();
        for line in SYNONYMS.lines() {
            let (standard, others) = line.split_once(':').expect("a colon");
            for phrase in others.split_whitespace().chain([standard]) {
                assert!(seen.insert(phrase), "{phrase} stands twice");
            }
        }
    }

    #[test]
    fn phrases_and_words_are_replaced_by_what_stands_for_them() {
        let standard = |text: &str| standardised(&words(text)).join(" ");
        assert_eq!(
            standard("throw this conversation away"),
            "throw this chat away"
        );
        assert_eq!(standard("Get rid of my PC"), "delete my computer");
        assert_eq!(standard("get"), "get");
    }

    #[test]
    fn the_last_typed_word_may_be_unfinished() {
        assert!(begin("Delete a chat", "del"));
        assert!(begin("Delete a chat", "chat DEL"));
        assert!(!begin("Delete a chat", "elete"));
        assert!(!begin("Delete a chat", ""));
    }
}
