//! Decoder of UTF-8 that arrives in chunks.

/// Flushes an incomplete character at the end of the input.
#[derive(Default)]
pub(crate) struct Utf8 {
    /// First bytes of a character whose other bytes may follow.
    begun: Vec<u8>,
    /// Number of invalid sequences.
    pub replaced: usize,
}

impl Utf8 {
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let mut text = std::mem::take(&mut self.begun);
        text.extend_from_slice(bytes);
        let mut chunks = text.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            out.push_str(chunk.valid());
            let other = chunk.invalid();
            let may_go_on =
                || str::from_utf8(other).is_err_and(|error| error.error_len().is_none());
            if chunks.peek().is_none() && may_go_on() {
                self.begun = other.to_vec();
            } else if !other.is_empty() {
                self.replace(out);
            }
        }
    }

    /// Flushes an incomplete character at the end of the input.
    pub fn end(&mut self, out: &mut String) {
        if !std::mem::take(&mut self.begun).is_empty() {
            self.replace(out);
        }
    }

    fn replace(&mut self, out: &mut String) {
        out.push(char::REPLACEMENT_CHARACTER);
        self.replaced += 1;
    }
}
