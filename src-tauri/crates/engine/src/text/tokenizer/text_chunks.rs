//! Chunks of long text, so that encoding takes little memory and can be cancelled. They are split where the
//! pre-tokeniser certainly has a word boundary, so that no token changes; only a word longer than any real one is split
//! inside.

use super::split::WordSplit;

/// Bytes of a chunk, if the text has boundaries at that distance.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// The most bytes of any chunk.
pub(super) const MAX_CHUNK_BYTES: usize = 4 * CHUNK_BYTES;

/// Chunks of `text` of at most `size` bytes, or up to `longest` if it has no boundaries at that distance.
pub(super) fn chunks<'a>(
    text: &'a str,
    split: &'static WordSplit,
    size: usize,
    longest: usize,
) -> impl Iterator<Item = &'a str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (chunk, behind) = rest.split_at(length(rest, split, size, longest));
        rest = behind;
        Some(chunk)
    })
}

/// Bytes of the first chunk.
fn length(text: &str, split: &WordSplit, size: usize, longest: usize) -> usize {
    if text.len() <= size {
        return text.len();
    }
    let longest = longest.min(text.len());
    let before = (1..=size).rev().find(|&at| is_boundary(text, split, at));
    let boundary = before.or_else(|| (size + 1..longest).find(|&at| is_boundary(text, split, at)));
    boundary.unwrap_or_else(|| text.floor_char_boundary(longest))
}

/// Returns true if the pre-tokeniser certainly has a word boundary at byte `at` of `text`.
///
/// Properties of every [`WordSplit`]: within a word no letter comes before another kind of character, and the end of a
/// run of letters does not depend on the text that follows; a word has a space only at its start or among white space;
/// a word continues after a line break only with white space, and a line break ends the run of white space before it,
/// in some splits only if it is all of that run. Characters whose class as letter or white space differs between
/// Unicode versions are not used.
fn is_boundary(text: &str, split: &WordSplit, at: usize) -> bool {
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
        || last == '\n'
            && (next.is_ascii_graphic() || next.is_alphabetic())
            && (split.line_break_ends_word || is_alone(before))
}

/// Returns true if the line break that ends `text` follows a visible character.
fn is_alone(text: &str) -> bool {
    let before = text
        .strip_suffix('\n')
        .and_then(|text| text.chars().next_back());
    before.is_some_and(|it| it.is_alphanumeric() || it.is_ascii_graphic())
}
