//! Token ids to bytes, and bytes to whole characters.

use super::byte_alphabet::byte_of;
use super::vocabulary::{TokenType, Vocabulary};

/// The bytes of every token, end to end.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// End of each token's bytes; they begin at the end of the previous token.
    ends: Vec<usize>,
}

impl Pieces {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(vocabulary.tokens.len()));
        for (_, token, ty) in vocabulary.iter() {
            // Only ordinary tokens are written in the byte alphabet.
            if ty != TokenType::Normal || token.chars().any(|c| byte_of(c).is_none()) {
                bytes.extend_from_slice(token.as_bytes());
            } else {
                bytes.extend(token.chars().filter_map(byte_of));
            }
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    /// Bytes of the longest token.
    pub(super) fn longest(&self) -> usize {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let lengths = starts.zip(&self.ends).map(|(start, end)| end - start);
        lengths.max().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else {
            return &[];
        };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }
}

/// Streaming decoder of token ids into whole characters: bytes of an incomplete one are kept for the next id.
#[derive(Default)]
pub struct Decoder {
    /// The bytes of an incomplete character, three at most between calls.
    pending: Vec<u8>,
    text: String,
}

impl Decoder {
    /// The text that a token with these bytes completes. Bytes that
    /// are invalid UTF-8 become U+FFFD.
    pub fn push(&mut self, piece: &[u8]) -> &str {
        self.text.clear();
        self.pending.extend_from_slice(piece);
        let mut done = 0;
        loop {
            match std::str::from_utf8(&self.pending[done..]) {
                Ok(text) => {
                    self.text.push_str(text);
                    self.pending.clear();
                    return &self.text;
                }
                Err(error) => {
                    let valid = done + error.valid_up_to();
                    self.text
                        .push_str(&String::from_utf8_lossy(&self.pending[done..valid]));
                    let Some(invalid) = error.error_len() else {
                        self.pending.drain(..valid);
                        return &self.text;
                    };
                    self.text.push(char::REPLACEMENT_CHARACTER);
                    done = valid + invalid;
                }
            }
        }
    }

    /// The end of the text: an incomplete character becomes U+FFFD.
    pub fn finish(&mut self) -> &str {
        self.text.clear();
        if !self.pending.is_empty() {
            self.pending.clear();
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_arrive_whole() {
        let smile = "🙂".as_bytes();
        let mut decoder = Decoder::default();
        let mut next = |piece: &[u8]| decoder.push(piece).to_owned();
        let whole = [b"a", &smile[..1], &smile[1..3], &smile[3..]].map(&mut next);
        assert_eq!(whole, ["a", "", "", "🙂"]);
        assert_eq!(
            next(b"\xff"),
            "\u{fffd}",
            "a byte that begins nothing does not wait"
        );
        let begun = b"\xe6\x97";
        assert_eq!(
            [next(begun), next(b"a")],
            ["", "\u{fffd}a"],
            "an invalid character is replaced"
        );
        assert_eq!([next(begun), next(b"")], ["", ""]);
        assert_eq!(decoder.finish(), "\u{fffd}");
        assert_eq!(decoder.finish(), "");
    }
}
