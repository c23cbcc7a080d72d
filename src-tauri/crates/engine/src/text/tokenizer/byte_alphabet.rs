//! The byte-level alphabet of GPT-2: a printable character for every byte.

/// The byte of a character of the byte-level alphabet: printable Latin-1 maps to itself,
/// the other 68 bytes follow in order from U+0100.
pub(super) fn byte_of(c: char) -> Option<u8> {
    let code = u32::from(c);
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// The character of `byte` in the byte-level alphabet.
pub(super) fn char_of(byte: u8) -> char {
    let code = u32::from(byte);
    let code = match byte {
        0..=0x20 => code + 0x100,
        0x7f..=0xa0 => code - 0x7f + 0x121,
        0xad => 0x143,
        _ => code,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_alphabet_is_a_bijection() {
        for byte in 0..=u8::MAX {
            assert_eq!(byte_of(char_of(byte)), Some(byte));
        }
        assert_eq!(
            (char_of(b' '), char_of(b'\n'), char_of(0xad)),
            ('Ġ', 'Ċ', '\u{143}')
        );
        assert_eq!(byte_of('\u{144}'), None);
    }
}
