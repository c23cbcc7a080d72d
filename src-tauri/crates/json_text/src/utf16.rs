//! Decoder of UTF-16 that arrives in chunks.

/// Decodes UTF-16; an unpaired surrogate becomes U+FFFD.
pub(crate) struct Utf16 {
    unit: fn([u8; 2]) -> u16,
    /// Half a unit.
    byte: Option<u8>,
    /// A high surrogate whose other half may follow.
    high: Option<u16>,
}

impl Utf16 {
    /// Makes a decoder. `unit` makes a unit of two bytes.
    pub fn new(unit: fn([u8; 2]) -> u16) -> Utf16 {
        Utf16 {
            unit,
            byte: None,
            high: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        for byte in bytes {
            let Some(first) = self.byte.take() else {
                self.byte = Some(*byte);
                continue;
            };
            let unit = (self.unit)([first, *byte]);
            let is_high = (0xd800..0xdc00).contains(&unit);
            let high = std::mem::replace(&mut self.high, is_high.then_some(unit));
            let units = high.into_iter().chain((!is_high).then_some(unit));
            let decoded = char::decode_utf16(units);
            out.extend(decoded.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)));
        }
    }

    /// Writes what is left at the end of the input.
    pub fn end(&mut self, out: &mut String) {
        let halves = [self.high.take().is_some(), self.byte.take().is_some()];
        let halves = halves.into_iter().filter(|is_there| *is_there);
        out.extend(halves.map(|_| char::REPLACEMENT_CHARACTER));
    }
}
