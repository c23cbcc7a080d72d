//! What a query asks for: words, and phrases in quotes.

/// What of a query is looked for.
const MAX_CHARS: usize = 512;
const MAX_WORDS: usize = 32;

/// A word that is looked for, or several that were quoted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) text: String,
    /// Its last word is whole, and not just a beginning: its quotes are closed.
    is_closed: bool,
    is_quoted: bool,
}

impl Term {
    /// What the index of words is asked for.
    pub(super) fn as_word(&self) -> String {
        let end = if self.is_closed { "" } else { "*" };
        format!("{}{end}", quoted(&self.text))
    }

    /// The trigram index finds nothing shorter than three characters.
    pub(super) fn has_parts(&self) -> bool {
        !self.is_quoted && self.text.chars().filter(|c| c.is_alphanumeric()).count() >= 3
    }
}

/// As a string of FTS5, in which nothing is syntax.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The words of a query, and the phrases that stand in quotes; quotes that are not closed yet hold
/// what is being typed.
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
                .filter(|text| text.chars().any(char::is_alphanumeric))
                .map(|text| Term {
                    text: text.to_owned(),
                    is_closed: is_quoted && at < last,
                    is_quoted,
                }),
        );
    }
    terms.truncate(MAX_WORDS);
    // A prefix of one letter matches a large part of all words, which is slow: only the word that is being typed may be
    // one.
    if let Some((_, before)) = terms.split_last_mut() {
        for term in before {
            term.is_closed |= is_letter(&term.text);
        }
    }
    terms
}

/// A letter or a digit by itself, of a script that writes words with several.
fn is_letter(text: &str) -> bool {
    const FIRST_IDEOGRAPHIC: char = '\u{2E80}';
    let mut characters = text.chars().filter(|c| c.is_alphanumeric());
    characters.next().is_some_and(|c| c < FIRST_IDEOGRAPHIC) && characters.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_cut_at_its_limits() {
        assert_eq!(terms(&"ab ".repeat(32)).len(), 32);
        assert_eq!(terms(&"ab ".repeat(33)).len(), 32);
        let longest = |query: &str| terms(query).remove(0).text.chars().count();
        assert_eq!(longest(&"ü".repeat(512)), 512);
        assert_eq!(longest(&"ü".repeat(513)), 512);
    }

    #[test]
    fn quotes_hold_words_together() {
        let read = |query: &str| {
            let term = |term: Term| (term.text.clone(), term.as_word());
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
                term("我", "\"我\"*"),
                term("b", "\"b\"*")
            ]
        );
        assert_eq!(read("\"\" \" \" \"-\""), []);
    }
}
