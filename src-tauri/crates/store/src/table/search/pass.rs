//! The passes of a search, from exact matches to matches within words.

use super::query::{Literal, Term};
use super::snippet::{Marker, Needle};

/// One of the two kinds of indices.
#[derive(Clone, Copy)]
pub(super) enum IndexKind {
    Words,
    Trigrams,
}

impl IndexKind {
    pub(super) fn titles(self) -> &'static str {
        match self {
            IndexKind::Words => "chat_search",
            IndexKind::Trigrams => "chat_part_search",
        }
    }

    pub(super) fn messages(self) -> &'static str {
        match self {
            IndexKind::Words => "message_search",
            IndexKind::Trigrams => "message_part_search",
        }
    }
}

/// One way of matching the terms of a query.
pub(super) struct SearchPass {
    pub(super) is_literal: bool,
    pub(super) index: IndexKind,
    /// Condition on the index.
    pub(super) all: String,
    /// Additional condition on the index of words.
    pub(super) others: Option<String>,
    pub(super) marker: Marker,
}

impl SearchPass {
    /// Returns the passes for these terms, the most exact first.
    pub(super) fn all(terms: &[Term]) -> Vec<SearchPass> {
        let passes = [
            SearchPass::literal(terms),
            SearchPass::words(terms),
            SearchPass::parts(terms),
        ];
        passes.into_iter().flatten().collect()
    }

    /// Matches terms with symbols literally, beside the words of the others; `None` without symbols.
    fn literal(terms: &[Term]) -> Option<SearchPass> {
        if !terms.iter().any(Term::has_signs) {
            return None;
        }
        let (mut trigrams, mut words, mut needles) = (Vec::new(), Vec::new(), Vec::new());
        for term in terms {
            if !term.has_signs() {
                words.extend(term.as_words());
                needles.push(Needle::words(term));
                continue;
            }
            needles.push(Needle::literal(term));
            match term.as_literal() {
                Literal::Trigrams(phrase) => trigrams.push(phrase),
                Literal::Signs(phrase) => words.push(format!("signs : {phrase}")),
            }
        }
        Some(SearchPass::new(true, &trigrams, &words, needles))
    }

    /// Matches all terms as prefixes, or as words if they are quoted; `None` if none has words.
    fn words(terms: &[Term]) -> Option<SearchPass> {
        let words: Vec<String> = terms.iter().filter_map(Term::as_words).collect();
        if words.is_empty() {
            return None;
        }
        let needles = terms.iter().map(Needle::words).collect();
        Some(SearchPass::new(false, &[], &words, needles))
    }

    /// Matches terms within words, as far as possible; `None` if no term allows it.
    fn parts(terms: &[Term]) -> Option<SearchPass> {
        let (mut trigrams, mut words, mut needles) = (Vec::new(), Vec::new(), Vec::new());
        for term in terms {
            match term.as_part() {
                Some(phrase) => {
                    trigrams.push(phrase);
                    needles.push(Needle::literal(term));
                }
                None => {
                    words.extend(term.as_words());
                    needles.push(Needle::words(term));
                }
            }
        }
        if trigrams.is_empty() {
            return None;
        }
        Some(SearchPass::new(false, &trigrams, &words, needles))
    }

    fn new(
        is_literal: bool,
        trigrams: &[String],
        words: &[String],
        needles: Vec<Needle>,
    ) -> SearchPass {
        let (index, all, others) = match trigrams {
            [] => (IndexKind::Words, words, None),
            _ => (
                IndexKind::Trigrams,
                trigrams,
                (!words.is_empty()).then(|| words.join(" ")),
            ),
        };
        SearchPass {
            is_literal,
            index,
            all: all.join(" "),
            others,
            marker: Marker::new(needles),
        }
    }

    /// Returns the condition that the others match the index of words, too.
    pub(super) fn also(&self, index: &str, words: &str) -> String {
        match self.others {
            // The parameter must occur in each statement.
            None => "?2 IS NULL".to_owned(),
            // The plus makes SQLite look up each hit in the list, instead of querying the index for each of the list.
            Some(_) => {
                format!("+{index}.rowid IN (SELECT rowid FROM {words} WHERE {words} MATCH ?2)")
            }
        }
    }
}
