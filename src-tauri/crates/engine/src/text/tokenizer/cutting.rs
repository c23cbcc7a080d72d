//! Long text in pieces, so that encoding them one by one takes little memory and can be stopped. They are cut where the
//! split into words surely has an edge, so that no token changes; only a word as long as no language has it is cut
//! inside.

/// Bytes of a piece, where the text has edges so close to each other.
pub(super) const PIECE: usize = 64 << 10;
/// The most bytes of any piece.
pub(super) const LONGEST: usize = 4 * PIECE;

/// Pieces of `text` of at most `size` bytes, or of more, up to `longest`, where it has no edges so close to each other.
pub(super) fn pieces(text: &str, size: usize, longest: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, behind) = rest.split_at(length(rest, size, longest));
        rest = behind;
        Some(piece)
    })
}

/// Bytes of the first piece.
fn length(text: &str, size: usize, longest: usize) -> usize {
    if text.len() <= size {
        return text.len();
    }
    let longest = longest.min(text.len());
    let before = (1..=size).rev().find(|&at| is_edge(text, at));
    let edge = before.or_else(|| (size + 1..longest).find(|&at| is_edge(text, at)));
    edge.unwrap_or_else(|| text.floor_char_boundary(longest))
}

/// Whether the words of `text` are those of its first `at` bytes and then those of the rest, for certain.
///
/// By [`super::vocabulary::SPLIT`]: no word has a letter before something else, and whether a run of letters ends does not
/// depend on what follows; no word has a space but at its start or among white space; no word goes on behind a line break
/// but with white space, and a line break ends the run of white space before it. Which characters the expression takes for
/// letters or white space is not asked of those where opinions differ.
fn is_edge(text: &str, at: usize) -> bool {
    let (Some(before), Some(after)) = (text.get(..at), text.get(at..)) else {
        return false;
    };
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else {
        return false;
    };
    let letter = last.is_ascii_alphabetic() || matches!(last, '\u{4e00}'..='\u{9fa5}');
    let other = next.is_ascii() && !next.is_ascii_alphabetic() || "，。、！？；：".contains(next);
    let visible = last.is_alphanumeric() || last.is_ascii_graphic();
    letter && other
        || visible && next == ' '
        || last == '\n' && (next.is_ascii_graphic() || next.is_alphabetic())
}
