//! Special tokens: control tokens and the tags that the model was taught as single tokens.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::vocabulary::{Kind, Vocabulary};

/// The special tokens of a vocabulary, found by text.
pub(crate) struct Specials {
    ids: HashMap<String, u32>,
    /// Longest first, so that the first match is the right one.
    texts: Vec<String>,
    /// Characters that begin a special token's text.
    starts: Vec<char>,
    /// Characters that end one.
    ends: Vec<char>,
    control: HashSet<u32>,
}

impl Specials {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let (mut ids, mut control) = (HashMap::new(), HashSet::new());
        for (id, token, kind) in vocabulary.iter() {
            if kind == Kind::Control {
                control.insert(id);
            }
            if matches!(kind, Kind::Control | Kind::Tag) && !token.is_empty() {
                ids.entry(token.to_owned()).or_insert(id);
            }
        }
        let mut texts: Vec<String> = ids.keys().cloned().collect();
        texts.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
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

    /// Whether `text` is part of a special token's text.
    pub(crate) fn contain(&self, text: &str) -> bool {
        self.texts.iter().any(|special| special.contains(text))
    }

    /// The first special token in `text`, the longest where several begin.
    pub(crate) fn find(&self, text: &str) -> Option<(Range<usize>, u32)> {
        text.match_indices(self.starts.as_slice())
            .find_map(|(at, _)| {
                let (length, id) = self.starting(&text[at..])?;
                Some((at..at + length, id))
            })
    }

    /// The longest special token that `text` begins with: its length in bytes and its id.
    pub(crate) fn starting(&self, text: &str) -> Option<(usize, u32)> {
        let special = self
            .texts
            .iter()
            .find(|special| text.starts_with(special.as_str()))?;
        Some((special.len(), self.ids[special]))
    }
}

/// Each of them once.
fn sorted(characters: impl Iterator<Item = char>) -> Vec<char> {
    let mut characters: Vec<char> = characters.collect();
    characters.sort_unstable();
    characters.dedup();
    characters
}
