//! Limits of titles and texts.

use store::{Part, WholeChat};

/// Characters of a title.
const TITLE: usize = 200;
/// Bytes of a text: the limit of a message written in the app.
pub(crate) const TEXT: usize = 4_000_000;
/// Bytes of all texts of a chat of another program.
pub(crate) const CHAT_TEXT: usize = 64 << 20;
/// Values of a chat of another program that are kept: nodes, messages, versions, parts and their fields. A message has
/// about ten of them.
pub(crate) const CHAT_VALUES: usize = 1_000_000;
/// Messages of a chat of our own format, and bytes of their lines: the reading process holds a chat in memory.
pub(crate) const CHAT_MESSAGES: usize = 1_000_000;
pub(crate) const CHAT_LINES: usize = 480 << 20;

/// Truncates titles and texts that are too long. Returns the number of truncated texts.
pub(crate) fn cut_long_texts(whole: &mut WholeChat) -> usize {
    whole.chat.title = title(&whole.chat.title);
    let mut cut = 0;
    for message in &mut whole.messages {
        let texts = message.parts.0.iter_mut().map(Part::content_mut);
        for text in texts.filter(|text| text.len() > TEXT) {
            text.truncate(text.floor_char_boundary(TEXT));
            text.push_str("\n\n[The rest was too long to be imported.]");
            cut += 1;
        }
    }
    cut
}

/// A text of at most this number of characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Shortens a title to one line of limited length.
pub(crate) fn title(text: &str) -> String {
    let mut title = String::new();
    let mut characters = 0;
    for word in text.split(|character: char| character.is_whitespace() || character.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !title.is_empty() {
            title.push(' ');
            characters += 1;
        }
        for character in word.chars() {
            if characters == TITLE - 1 {
                title.push('…');
                return title;
            }
            title.push(character);
            characters += 1;
        }
    }
    title
}
