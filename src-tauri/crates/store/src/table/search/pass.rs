//! The ways in which the terms of a query are looked for.

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

/// One way in which the terms of a query are looked for.
pub(super) struct SearchPass {
    pub(super) is_literal: bool,
    pub(super) index: IndexKind,
    /// What has to match in the index.
    pub(super) all: String,
    /// What has to match in the index of words besides.
    pub(super) others: Option<String>,
    pub(super) marker: Marker,
}

impl SearchPass {
    /// The ways to look for these terms, the most exact first.
    pub(super) fn all(terms: &[Term]) -> Vec<SearchPass> {
        let passes = [
            SearchPass::literal(terms),
            SearchPass::words(terms),
            SearchPass::parts(terms),
        ];
        passes.into_iter().flatten().collect()
    }

    /// Terms with signs as they stand, beside the words of the others; `None` without signs.
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

    /// All terms as beginnings of words, or as words where they are quoted; `None` where none has words.
    fn words(terms: &[Term]) -> Option<SearchPass> {
        let words: Vec<String> = terms.iter().filter_map(Term::as_words).collect();
        if words.is_empty() {
            return None;
        }
        let needles = terms.iter().map(Needle::words).collect();
        Some(SearchPass::new(false, &[], &words, needles))
    }

    /// Terms within words, as far as they can be; `None` where none can.
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

    /// The condition that the others match the index of words, too.
    pub(super) fn also(&self, index: &str, words: &str) -> String {
        match self.others {
            // The parameter has to stand in each statement.
            None => "?2 IS NULL".to_owned(),
            // The plus has SQLite look each hit up in the list, and not ask the index for each of the list.
            Some(_) => {
                format!("+{index}.rowid IN (SELECT rowid FROM {words} WHERE {words} MATCH ?2)")
            }
        }
    }
}
