//! Long text in pieces, cut only where the split into words surely has an edge, so that no token changes.

/// Pieces of at most `size` bytes of `text`, where it has edges so close to each other.
pub(super) fn pieces(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(length(rest, size));
        rest = behind;
        Some(piece)
    })
}

/// Bytes of the first piece.
fn length(text: &str, size: usize) -> usize {
    if text.len() <= size {
        return text.len();
    }
    let before = (1..=size).rev().find(|&at| is_edge(text, at));
    let edge = before.or_else(|| (size + 1..text.len()).find(|&at| is_edge(text, at)));
    edge.unwrap_or(text.len())
}

/// Whether the words of `text` are those of its first `at` bytes and then those of the rest, for certain.
///
/// By [`super::vocabulary::SPLIT`]: no word has a letter before something else, and whether a run of letters ends does not
/// depend on what follows; no word goes on behind a line break but with white space, and a line break ends the run of
/// white space before it. Which characters the expression takes for letters is not asked of those where opinions differ.
fn is_edge(text: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(at..)) else {
        return false;
    };
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else {
        return false;
    };
    let letter = last.is_ascii_alphabetic() || matches!(last, '\u{4e00}'..='\u{9fa5}');
    let other = next.is_ascii() && !next.is_ascii_alphabetic() || "，。、！？；：".contains(next);
    letter && other || last == '\n' && (next.is_ascii_graphic() || next.is_alphabetic())
}
