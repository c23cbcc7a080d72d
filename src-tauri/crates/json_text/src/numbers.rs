//! Numbers out of range.

/// Bytes of a number. A longer one is left to the parser.
const LONGEST: usize = 1 << 12;
/// Number of digits up to which a number without an exponent is in range.
const SAFE_DIGITS: usize = 300;

/// Writes `null` for numbers that are out of range, `NaN` and `Infinity` included, in text that arrives in chunks.
#[derive(Default)]
pub(crate) struct Numbers {
    in_string: bool,
    is_escaped: bool,
    /// A number or a name whose end has not come yet.
    word: Vec<u8>,
    /// True if the word is too long to be buffered.
    is_long: bool,
}

impl Numbers {
    pub fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        while let Some(first) = text.first() {
            let taken = if self.in_string {
                self.take_string(text, out)
            } else if is_of_word(*first) {
                self.take_word(text, out)
            } else {
                self.end(out);
                let is_other = |byte: &u8| is_of_word(*byte) || *byte == b'"';
                match *first {
                    b'"' => {
                        self.in_string = true;
                        out.push(b'"');
                        1
                    }
                    _ => copy_until(is_other, text, out),
                }
            };
            text = &text[taken..];
        }
    }

    /// Flushes the last number at the end of the input.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let word = std::mem::take(&mut self.word);
        let is_null = !self.is_long && is_out_of_range(&word);
        out.extend_from_slice(if is_null { b"null" } else { &word });
        self.is_long = false;
    }

    /// Returns the number of bytes taken.
    fn take_string(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        if std::mem::take(&mut self.is_escaped) {
            out.push(text[0]);
            return 1;
        }
        // A string ends at the end of its line at the latest: its closing quote may be missing.
        let is_mark = |byte: &u8| matches!(*byte, b'"' | b'\\' | b'\n');
        let plain = copy_until(is_mark, text, out);
        let Some(mark) = text.get(plain) else {
            return plain;
        };
        out.push(*mark);
        self.is_escaped = *mark == b'\\';
        self.in_string = self.is_escaped;
        plain + 1
    }

    fn take_word(&mut self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let end = text.iter().position(|byte| !is_of_word(*byte));
        let end = end.unwrap_or(text.len());
        self.word.extend_from_slice(&text[..end]);
        if self.word.len() > LONGEST {
            self.is_long = true;
            out.append(&mut self.word);
        }
        end
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// Returns the number of bytes copied.
fn copy_until(is_end: impl Fn(&u8) -> bool, text: &[u8], out: &mut Vec<u8>) -> usize {
    let end = text.iter().position(is_end).unwrap_or(text.len());
    out.extend_from_slice(&text[..end]);
    end
}

fn is_out_of_range(word: &[u8]) -> bool {
    if matches!(word, b"NaN" | b"Infinity" | b"-Infinity") {
        return true;
    }
    let is_number = matches!(word.first(), Some(b'-' | b'0'..=b'9'));
    let may_be_large = word.len() > SAFE_DIGITS || word.iter().any(|it| matches!(it, b'e' | b'E'));
    let value = || str::from_utf8(word).ok()?.parse::<f64>().ok();
    is_number && may_be_large && value().is_some_and(f64::is_infinite)
}
