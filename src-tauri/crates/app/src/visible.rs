//! Text of unknown origin, for a terminal or the log.

use std::borrow::Cow;
use std::io::{self, Write};

use figures::is_obeyed;

/// Escapes the characters that control a terminal: they could set its title, write to the clipboard, or reorder
/// letters. Lines and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |character| {
        (is_obeyed(character) && !matches!(character, '\n' | '\t'))
            .then(|| character.escape_default().to_string())
    })
}

/// Likewise for a name, which cannot begin another line either.
pub fn on_one_line(text: &str) -> Cow<'_, str> {
    replaced(text, |character| {
        (is_obeyed(character) || matches!(character, '\u{2028}' | '\u{2029}'))
            .then(|| character.escape_default().to_string())
    })
}

/// Replaces the characters for which `other` returns a text.
pub fn replaced(text: &str, other: impl Fn(char) -> Option<String>) -> Cow<'_, str> {
    if text.chars().all(|character| other(character).is_none()) {
        return Cow::Borrowed(text);
    }
    let characters = text.chars();
    Cow::Owned(
        characters
            .map(|character| other(character).unwrap_or_else(|| character.to_string()))
            .collect(),
    )
}

/// A writer that makes everything [`visible`].
pub struct Visible<W>(pub W);

impl<W: Write> Write for Visible<W> {
    /// Formatting hands over whole strings, so no character is cut in two.
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let shown = String::from_utf8_lossy(text);
        self.0.write_all(visible(&shown).as_bytes())?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(visible("Grüße,\n\t你好"), "Grüße,\n\t你好");
        assert_eq!(visible("\u{200f}שלום"), "\u{200f}שלום");
        assert_eq!(
            visible("a\u{1b}]52;c;eA==\u{7}b\u{9b}31m\r\u{7f}\u{202e}c\u{2066}"),
            "a\\u{1b}]52;c;eA==\\u{7}b\\u{9b}31m\\r\\u{7f}\\u{202e}c\\u{2066}"
        );
    }

    #[test]
    fn a_name_stays_on_its_line() {
        let name = "a\nb\tc\u{2028}d\u{85}e";
        assert_eq!(on_one_line(name), "a\\nb\\tc\\u{2028}d\\u{85}e");
    }

    #[test]
    fn a_writer_makes_all_that_it_takes_visible() {
        let mut out = Visible(Vec::new());
        writeln!(out, "\u{1b}[2J: {:>4}é", "\u{7}").expect("it is memory");
        let text = String::from_utf8(out.0).expect("UTF-8");
        assert_eq!(text, "\\u{1b}[2J:    \\u{7}é\n");
    }
}
