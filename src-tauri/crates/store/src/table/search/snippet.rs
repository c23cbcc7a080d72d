//! The text around a hit, in which the hits are marked.

use rusqlite::{Connection, OptionalExtension};

use super::query::{Term, quoted};
use crate::deadline::Deadline;
use crate::table::id::MessageId;

/// Characters of a text that FTS5's `snippet` gets at a time. Its time grows with the square of the
/// hits, and nothing interrupts it: a text of 15 KB with 5,000 hits takes a third of a second.
const PART: usize = 2000;
/// The same of the beginning of a text, where what is common is found already, and of trigrams, of which
/// there is one for each character.
const SMALL_PART: usize = 400;

/// Makes the tables in which the text around a hit is looked for, in memory and for this connection.
pub(crate) fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "temp_store", "MEMORY")?;
    db.execute_batch(
        "CREATE VIRTUAL TABLE temp.excerpt USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
         CREATE VIRTUAL TABLE temp.part_excerpt USING fts5 (text, tokenize = 'trigram remove_diacritics 1')",
    )
}

/// How the text around the hits of a search is made.
pub(super) struct Snippets {
    /// What is marked.
    any: String,
    /// The table that marks it, and how.
    table: &'static str,
    shown: &'static str,
    cut: Option<fn(&str) -> String>,
    /// Characters that the table gets at a time, behind the beginning.
    part: usize,
    /// Of each term letters and digits that stand together wherever it does, in lower case; empty
    /// where that is not as simple.
    needles: Vec<String>,
}

impl Snippets {
    /// Of terms as the index of words has them.
    pub(super) fn of_words(terms: &[Term]) -> Snippets {
        let each: Vec<String> = terms.iter().map(Term::as_word).collect();
        Snippets {
            any: each.join(" OR "),
            table: "excerpt",
            shown: "snippet(excerpt, 0, char(0xE000), char(0xE001), '…', 16)",
            cut: None,
            part: PART,
            needles: terms.iter().map(needle).collect(),
        }
    }

    /// Of terms within words.
    pub(super) fn of_parts(terms: &[&Term]) -> Snippets {
        let each: Vec<String> = terms.iter().map(|term| quoted(&term.text)).collect();
        Snippets {
            any: each.join(" OR "),
            table: "part_excerpt",
            shown: "highlight(part_excerpt, 0, char(0xE000), char(0xE001))",
            cut: Some(around_first_hit),
            part: SMALL_PART,
            needles: terms.iter().map(|term| needle(term)).collect(),
        }
    }

    /// Text around the first hit in a message, and whether that is in its thinking; `None`: there is no
    /// time to look for it.
    pub(super) fn of_message(
        &self,
        db: &Connection,
        deadline: &Deadline,
        message: MessageId,
    ) -> rusqlite::Result<Option<(String, bool)>> {
        let (text, thinking) = db
            .prepare_cached("SELECT text, thinking FROM message WHERE id = ?1")?
            .query_row([message.0], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Option<String>>(1)?))
            })?;
        let thinking = thinking.unwrap_or_default();
        for (whole, in_thinking) in [(text, false), (thinking, true)] {
            let mut rest = whole.as_str();
            while !rest.is_empty() && !deadline.has_passed() {
                let is_first = rest.len() == whole.len();
                let part = first_part(rest, if is_first { SMALL_PART } else { self.part });
                rest = &rest[part.len()..];
                if let Some(snippet) = self.of_text(db, part)? {
                    let snippet = with_ellipses(snippet, is_first, rest.is_empty());
                    return Ok(Some((snippet, in_thinking)));
                }
            }
        }
        Ok(None)
    }

    /// Text around the hits in this text; `None`: it has none.
    fn of_text(&self, db: &Connection, text: &str) -> rusqlite::Result<Option<String>> {
        if !self.may_be_in(text) {
            return Ok(None);
        }
        let Snippets { table, shown, .. } = self;
        let insert = format!("INSERT OR REPLACE INTO temp.{table} (rowid, text) VALUES (1, ?1)");
        db.prepare_cached(&insert)?.execute([text])?;
        let read = format!("SELECT {shown} FROM temp.{table} WHERE {table} MATCH ?1");
        let shown: Option<String> = db
            .prepare_cached(&read)?
            .query_row([&self.any], |row| row.get(0))
            .optional()?;
        Ok(shown.map(|shown| self.cut.map_or_else(|| shown.clone(), |cut| cut(&shown))))
    }

    /// False of a text that has none of the terms, which is known much sooner than FTS5 has read it. Only
    /// of ASCII is it as simple as that: FTS5 has tables of its own for case and accents.
    fn may_be_in(&self, text: &str) -> bool {
        if !text.is_ascii() || self.needles.iter().any(String::is_empty) {
            return true;
        }
        let text = text.to_ascii_lowercase();
        self.needles.iter().any(|needle| text.contains(needle))
    }
}

/// The first letters and digits of a term of ASCII, in lower case.
fn needle(term: &Term) -> String {
    if !term.text.is_ascii() {
        return String::new();
    }
    let mut words = term.text.split(|c: char| !c.is_ascii_alphanumeric());
    let first = words.find(|word| !word.is_empty());
    first.unwrap_or_default().to_ascii_lowercase()
}

/// Characters before the first hit, and from there on, that are shown of a text.
const BEFORE: usize = 40;
const FROM: usize = 120;

/// The words around the first hit of a text whose hits are marked.
fn around_first_hit(marked: &str) -> String {
    let hit = marked.find('\u{E000}').unwrap_or(0);
    let start = marked[..hit]
        .char_indices()
        .rev()
        .nth(BEFORE)
        .map_or(0, |(at, _)| at);
    let end = marked[hit..]
        .char_indices()
        .nth(FROM)
        .map_or(marked.len(), |(at, _)| hit + at);
    let start = match marked[start..hit].find(char::is_whitespace) {
        Some(blank) if start > 0 => start + blank,
        _ => start,
    };
    let end = match marked[hit..end].rfind(char::is_whitespace) {
        Some(blank) if end < marked.len() => hit + blank,
        _ => end,
    };
    let begin = if start > 0 { "…" } else { "" };
    let rest = if end < marked.len() { "…" } else { "" };
    format!("{begin}{}{rest}", marked[start..end].trim())
}

/// What is left of a text up to the last blank in its first `most` characters.
fn first_part(text: &str, most: usize) -> &str {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text;
    };
    let blank = text[..end].rfind(char::is_whitespace);
    &text[..blank.filter(|at| *at > 0).unwrap_or(end)]
}

/// Marks where text was left out, beside where FTS5 has done so.
fn with_ellipses(snippet: String, is_first: bool, is_last: bool) -> String {
    let begin = if is_first || snippet.starts_with('…') {
        ""
    } else {
        "…"
    };
    let end = if is_last || snippet.ends_with('…') {
        ""
    } else {
        "…"
    };
    format!("{begin}{snippet}{end}")
}

#[cfg(test)]
mod tests {
    use super::super::query::terms;
    use super::*;

    #[test]
    fn what_has_none_of_the_terms_is_known_at_once() {
        let may_be = |query: &str, text: &str| Snippets::of_words(&terms(query)).may_be_in(text);
        assert!(may_be("planet", "Of the PLANETS"));
        assert!(may_be("wren planet", "a planet"), "one of them is enough");
        assert!(may_be("\"don't know\"", "DON, T"));
        assert!(may_be("planet", "nothing, but naïve"), "not known");
        assert!(may_be("ête", "the summer"), "not known");
        assert!(!may_be("planet", "the plan of it"));
    }

    #[test]
    fn the_words_around_a_hit_are_whole() {
        let text = format!(
            "{}p\u{E000}lanet\u{E001} {}",
            "before ".repeat(30),
            "after ".repeat(60)
        );
        let shown = around_first_hit(&text);
        assert!(shown.starts_with("…before before"), "{shown}");
        assert!(
            shown.contains("before p\u{E000}lanet\u{E001} after"),
            "{shown}"
        );
        assert!(
            shown.ends_with("after…") && shown.chars().count() < 170,
            "{shown}"
        );
        assert_eq!(
            around_first_hit("p\u{E000}lanet\u{E001}s"),
            "p\u{E000}lanet\u{E001}s"
        );
        let long = format!("{}\u{E000}x\u{E001}{}", "ü".repeat(500), "ü".repeat(500));
        assert!(around_first_hit(&long).chars().count() < 170);
    }

    #[test]
    fn a_text_is_looked_through_in_parts_that_end_at_a_blank() {
        let parts = |mut text: &str| {
            let mut parts = Vec::new();
            while !text.is_empty() {
                let part = first_part(text, 2000);
                parts.push(part.chars().count());
                text = &text[part.len()..];
            }
            parts
        };
        assert_eq!(parts(&"ü".repeat(2000)), [2000]);
        assert_eq!(parts(&"ü".repeat(2001)), [2000, 1]);
        assert_eq!(parts(&format!("ab {}", "ü".repeat(2000))), [2, 2000, 1]);
        assert_eq!(parts(&"abc ".repeat(600)), [1999, 401]);
    }
}
