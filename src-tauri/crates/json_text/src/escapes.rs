//! Escapes of UTF-16 units in JSON texts.

/// Replacement of an unpaired surrogate.
const REPLACEMENT: &[u8] = br"\ufffd";
/// Bytes of `\ud83d`.
const LENGTH: usize = 6;

/// Replaces escapes of unpaired surrogates in text that arrives in chunks.
#[derive(Default)]
pub(crate) struct Escapes {
    /// The escape of a high surrogate whose other half may follow.
    high: Option<Vec<u8>>,
    /// An escape that has begun.
    begun: Vec<u8>,
}

impl Escapes {
    pub fn push(&mut self, mut text: &[u8], out: &mut Vec<u8>) {
        while let Some((first, rest)) = text.split_first() {
            if self.begun.is_empty() && self.high.is_none() {
                let plain = text.iter().position(|byte| *byte == b'\\');
                let (plain, escape) = text.split_at(plain.unwrap_or(text.len()));
                out.extend_from_slice(plain);
                if !escape.is_empty() {
                    self.begun.push(b'\\');
                }
                text = escape.get(1..).unwrap_or_default();
            } else {
                self.take(*first, out);
                text = rest;
            }
        }
    }

    /// Flushes an incomplete escape at the end of the input.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        self.give_up_high(out);
        out.append(&mut self.begun);
    }

    fn take(&mut self, byte: u8, out: &mut Vec<u8>) {
        let goes_on = match self.begun.len() {
            0 => byte == b'\\',
            1 => byte == b'u',
            _ => byte.is_ascii_hexdigit(),
        };
        if goes_on {
            self.begun.push(byte);
            if self.begun.len() == LENGTH {
                self.end_escape(out);
            }
            return;
        }
        self.give_up_high(out);
        let is_short_escape = self.begun.len() == 1;
        out.append(&mut self.begun);
        if byte == b'\\' && !is_short_escape {
            self.begun.push(byte);
        } else {
            out.push(byte);
        }
    }

    fn end_escape(&mut self, out: &mut Vec<u8>) {
        let escape = std::mem::take(&mut self.begun);
        let digits = str::from_utf8(&escape[2..]).unwrap_or_default();
        match u16::from_str_radix(digits, 16).unwrap_or_default() {
            0xd800..=0xdbff => {
                self.give_up_high(out);
                self.high = Some(escape);
            }
            0xdc00..=0xdfff => match self.high.take() {
                Some(high) => {
                    out.extend_from_slice(&high);
                    out.extend_from_slice(&escape);
                }
                None => out.extend_from_slice(REPLACEMENT),
            },
            _ => {
                self.give_up_high(out);
                out.extend_from_slice(&escape);
            }
        }
    }

    fn give_up_high(&mut self, out: &mut Vec<u8>) {
        if self.high.take().is_some() {
            out.extend_from_slice(REPLACEMENT);
        }
    }
}
