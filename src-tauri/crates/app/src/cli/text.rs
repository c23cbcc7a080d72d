//! Text from stdin and from files, in the encodings that programs write.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};

use ::chat::MAX_TEXT;

use super::output::CliError;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a whole input, without its byte order mark. `name`: its name in an error.
pub fn read_all(input: impl Read, name: &str) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = input.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::message(format!("{name} cannot be read: {error}")))?;
    if bytes.len() > MAX_TEXT {
        return Err(too_long(name));
    }
    decoded(bytes).map_err(|error| CliError::message(format!("{name} {error}")))
}

/// Decodes UTF-8, or UTF-16 that begins with a byte order mark, without that mark.
pub fn decoded(bytes: Vec<u8>) -> Result<String, String> {
    if let Some(text) = utf16(&bytes) {
        return text.ok_or("is UTF-16 that ends in the middle of a character".to_owned());
    }
    let text = match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => text.to_owned(),
        None => bytes,
    };
    String::from_utf8(text).map_err(|error| format!("is not UTF-8 text: {error}"))
}

/// Decodes UTF-16; the outer `None` without a byte order mark, the inner one if it is invalid.
fn utf16(bytes: &[u8]) -> Option<Option<String>> {
    let of: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return None,
    };
    let (pairs, rest) = bytes[2..].as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|pair| of(*pair)).collect();
    Some(String::from_utf16(&units).ok().filter(|_| rest.is_empty()))
}

/// Skips a byte order mark at the beginning of an input.
pub fn skip_mark(input: &mut impl BufRead) -> io::Result<()> {
    if input.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        input.consume(BYTE_ORDER_MARK.len());
    }
    Ok(())
}

/// The lines of an input, which need not all be UTF-8.
pub struct PipedLines<R> {
    input: R,
    begun: bool,
    /// The rest of an input in UTF-16.
    decoded: Option<io::Cursor<String>>,
}

impl<R: BufRead> PipedLines<R> {
    pub fn of(input: R) -> Self {
        Self {
            input,
            begun: false,
            decoded: None,
        }
    }

    /// Returns the next line, and whether all of it was UTF-8; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(String, bool)>, CliError> {
        const NAME: &str = "the input";
        let unreadable = |error| CliError::message(format!("{NAME} cannot be read: {error}"));
        if !self.begun {
            self.begun = true;
            let first = self.input.fill_buf().map_err(unreadable)?;
            if utf16(first).is_some() {
                let text = read_all(&mut self.input, NAME)?;
                self.decoded = Some(io::Cursor::new(text));
            } else {
                skip_mark(&mut self.input).map_err(unreadable)?;
            }
        }
        let input: &mut dyn BufRead = match &mut self.decoded {
            Some(decoded) => decoded,
            None => &mut self.input,
        };
        let mut line = Vec::new();
        let read = input.take(MAX_TEXT as u64 + 1).read_until(b'\n', &mut line);
        read.map_err(unreadable)?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > MAX_TEXT {
            return Err(too_long("a line of the input"));
        }
        let text = String::from_utf8_lossy(&line);
        let is_utf8 = matches!(text, Cow::Borrowed(_));
        Ok(Some((text.into_owned(), is_utf8)))
    }
}

fn too_long(name: &str) -> CliError {
    let most = figures::count(MAX_TEXT);
    CliError::message(format!(
        "{name} is longer than a message can be: {most} bytes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns "Grüße 🐦" as programs write it.
    fn encoded() -> [Vec<u8>; 4] {
        let text = "Grüße 🐦";
        let utf16 = |of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(of).collect()
        };
        [
            text.into(),
            format!("\u{feff}{text}").into(),
            utf16(u16::to_le_bytes),
            utf16(u16::to_be_bytes),
        ]
    }

    #[test]
    fn a_text_is_read_in_every_encoding_and_its_mark_is_dropped() {
        for bytes in encoded() {
            let text = read_all(&*bytes, "stdin").map_err(|error| error.to_string());
            assert_eq!(text.as_deref(), Ok("Grüße 🐦"), "{bytes:x?}");
            let mut lines = PipedLines::of(&*bytes);
            let line = lines.next().map_err(|error| error.to_string());
            assert_eq!(line, Ok(Some(("Grüße 🐦".to_owned(), true))), "{bytes:x?}");
            assert!(matches!(lines.next(), Ok(None)));
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (bytes, why) in [
            (&b"a\xff"[..], "stdin is not UTF-8"),
            (b"\xff\xfea", "stdin is UTF-16 that ends"),
            (b"\xff\xfe\x00\xd8", "stdin is UTF-16 that ends"),
        ] {
            let error = read_all(bytes, "stdin").expect_err("no text").to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn a_byte_that_is_not_utf8_is_replaced_in_its_line_alone() {
        let mut lines = PipedLines::of(&b"one\ntw\xff\n\xe4\xbd\nthree"[..]);
        let mut next = || lines.next().ok().flatten();
        for (text, is_utf8) in [
            ("one\n", true),
            ("tw\u{fffd}\n", false),
            ("\u{fffd}\n", false),
            ("three", true),
        ] {
            assert_eq!(next(), Some((text.to_owned(), is_utf8)));
        }
        assert_eq!(next(), None);
    }

    #[test]
    fn an_input_without_an_end_is_refused() {
        let endless = || io::BufReader::new(io::repeat(b'a'));
        let error = read_all(endless(), "stdin").expect_err("it is too long");
        let why = "stdin is longer than a message can be: 4,000,000 bytes";
        assert_eq!(error.to_string(), why);
        let error = PipedLines::of(endless())
            .next()
            .expect_err("it is too long");
        assert!(
            error
                .to_string()
                .starts_with("a line of the input is longer")
        );
        let most = vec![b'a'; MAX_TEXT];
        assert_eq!(read_all(&*most, "stdin").map_or(0, |it| it.len()), MAX_TEXT);
    }
}
