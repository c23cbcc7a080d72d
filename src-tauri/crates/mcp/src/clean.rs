//! Texts that a server wrote about itself, made safe to show. They may hide instructions or pose as another text.

/// Returns a text on one line, of at most this number of characters.
pub fn line(text: &str, limit: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    shortened(&visible(&words.join(" ")), limit)
}

/// Returns a text of several lines, of at most this number of characters.
pub fn paragraphs(text: &str, limit: usize) -> String {
    shortened(visible(text).trim(), limit)
}

/// Removes the characters that are not seen: commands to a terminal, control characters except for line ends and tabs, characters that change
/// the direction of writing, those without width, and tags, by which texts are hidden from people.
pub fn visible(text: &str) -> String {
    let mut shown = String::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\u{1b}' && characters.as_str().starts_with('[') {
            characters.next();
            // The command ends with a letter or a sign like it.
            characters.find(|c| !matches!(c, ' '..='?'));
        } else if !is_hidden(c) {
            shown.push(c);
        }
    }
    shown
}

fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    is_control
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns the beginning of a text that is too long, with an ellipsis.
fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_removed() {
        let hidden = "a\u{1b}[31m\u{202e}b\u{200b}\u{2066}c\u{e0041}\u{e0042}\0";
        assert_eq!(line(hidden, 100), "abc");
        assert_eq!(line("\u{1b}[1;31mred\u{1b}[0m\u{1b}", 100), "red");
        assert_eq!(line("one\r\n  two\tthree ", 100), "one two three");
        assert_eq!(paragraphs(" one\n\ttwo\r\n ", 100), "one\n\ttwo");
        assert_eq!(line("Grüße, 你好 שלום", 100), "Grüße, 你好 שלום");
    }

    #[test]
    fn a_long_text_ends_in_an_ellipsis() {
        assert_eq!(line("üüüü", 4), "üüüü");
        assert_eq!(line("üüüüü", 4), "üüü…");
    }
}
