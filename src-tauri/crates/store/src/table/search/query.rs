//! The terms of a query: words, and phrases in quotes.

use super::fold::fold;
use super::words::{WordKind, kind, tokens, words};

/// Limits of a query: the rest is ignored.
const MAX_CHARS: usize = 512;
const MAX_WORDS: usize = 32;

/// Minimum length for the trigram index.
const TRIGRAM: usize = 3;

/// A word of the query, or a phrase in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    /// Folded text as typed.
    pub(super) literal: String,
    /// Its words without the symbols between them.
    pub(super) words: Vec<String>,
    /// True if its last word is complete, and not just a prefix.
    pub(super) is_closed: bool,
    is_quoted: bool,
}

impl Term {
    fn new(text: &str, is_quoted: bool, is_closed: bool) -> Option<Term> {
        let literal = fold(text.trim());
        let is_empty = !literal.chars().any(|c| kind(c).is_some());
        (!is_empty).then(|| Term {
            words: words(&literal).map(str::to_owned).collect(),
            literal,
            is_closed,
            is_quoted,
        })
    }

    /// Returns the phrase for the index of words; `None` if it has only symbols.
    pub(super) fn as_words(&self) -> Option<String> {
        let last = self.words.last()?;
        // Characters of Chinese, Japanese and Korean are complete.
        let is_whole = self.is_closed || tokens(last).any(|t| t.kind == WordKind::Character);
        let end = if is_whole { "" } else { "*" };
        Some(format!("{}{end}", quoted(&self.words.join(" "))))
    }

    /// Returns the phrase for the trigram index, unless it is quoted or too short.
    pub(super) fn as_part(&self) -> Option<String> {
        let letters = self.words.iter().flat_map(|word| word.chars()).count();
        (!self.is_quoted && letters >= TRIGRAM).then(|| quoted(&self.literal))
    }

    /// Returns whether it has symbols, which are matched literally.
    pub(super) fn has_signs(&self) -> bool {
        tokens(&self.literal).any(|token| token.kind == WordKind::Sign)
    }

    /// Returns the phrase for all of it, with its symbols: for the trigram index, or for the symbols in the index of
    /// words.
    pub(super) fn as_literal(&self) -> Literal {
        let phrase = quoted(&self.literal);
        match self.literal.chars().count() {
            TRIGRAM.. => Literal::Trigrams(phrase),
            _ => Literal::Signs(phrase),
        }
    }

    /// Returns whether it is a single letter or digit of a script that writes words with several.
    fn is_letter(&self) -> bool {
        let mut characters = self.words.iter().flat_map(|word| word.chars());
        characters
            .next()
            .is_some_and(|c| kind(c) == Some(WordKind::Word))
            && characters.next().is_none()
    }
}

/// A phrase with symbols, by the index that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Literal {
    Trigrams(String),
    Signs(String),
}

/// Quotes a string for FTS5, so that nothing in it is syntax.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Parses the words of a query, and the phrases in quotes; an open quote holds the text that is being typed.
pub(super) fn terms(query: &str) -> Vec<Term> {
    let end = query
        .char_indices()
        .nth(MAX_CHARS)
        .map_or(query.len(), |(end, _)| end);
    let pieces: Vec<&str> = query[..end].split('"').collect();
    let last = pieces.len() - 1;
    let mut terms = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        let is_quoted = at % 2 == 1;
        let blank = |c: char| c == '\0' || (c.is_whitespace() && !is_quoted);
        terms.extend(
            piece
                .split(blank)
                .filter_map(|text| Term::new(text, is_quoted, is_quoted && at < last)),
        );
    }
    terms.truncate(MAX_WORDS);
    // A prefix of one letter matches a large part of all words, which is slow: only the word that is being typed may be
    // one.
    if let Some((_, before)) = terms.split_last_mut() {
        for term in before {
            term.is_closed |= term.is_letter();
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_cut_at_its_limits() {
        assert_eq!(terms(&"ab ".repeat(32)).len(), 32);
        assert_eq!(terms(&"ab ".repeat(33)).len(), 32);
        let longest = |query: &str| terms(query).remove(0).literal.chars().count();
        assert_eq!(longest(&"ü".repeat(512)), 512);
        assert_eq!(longest(&"ü".repeat(513)), 512);
    }

    #[test]
    fn quotes_hold_words_together() {
        let read = |query: &str| {
            let term = |term: Term| (term.literal.clone(), term.as_words().unwrap_or_default());
            terms(query).into_iter().map(term).collect::<Vec<_>>()
        };
        let term = |text: &str, asked: &str| (text.to_owned(), asked.to_owned());
        assert_eq!(
            read("fizz \"in rust\" py"),
            [
                term("fizz", "\"fizz\"*"),
                term("in rust", "\"in rust\""),
                term("py", "\"py\"*")
            ]
        );
        assert_eq!(read("\"in ru"), [term("in ru", "\"in ru\"*")]);
        assert_eq!(
            read("a 我 b"),
            [
                term("a", "\"a\""),
                term("我", "\"我\""),
                term("b", "\"b\"*")
            ]
        );
        assert_eq!(read("\"\" \" \""), []);
    }

    #[test]
    fn signs_are_looked_for_as_they_stand() {
        let literal = |query: &str| {
            let term = terms(query).remove(0);
            term.has_signs().then(|| term.as_literal())
        };
        let trigrams = |phrase: &str| Some(Literal::Trigrams(phrase.to_owned()));
        let signs = |phrase: &str| Some(Literal::Signs(phrase.to_owned()));
        assert_eq!(literal("C++"), trigrams("\"c++\""));
        assert_eq!(literal("C#"), signs("\"c#\""));
        assert_eq!(literal("🦅"), signs("\"🦅\""));
        assert_eq!(literal("👩\u{200D}👩\u{200D}👧"), trigrams("\"👩👩👧\""));
        assert_eq!(literal("words"), None);
        assert_eq!(terms("🦅").remove(0).as_words(), None);
        assert_eq!(terms("\u{200B} \u{FE0F}"), []);
    }
}
