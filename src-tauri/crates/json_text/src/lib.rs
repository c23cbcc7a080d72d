//! JSON as other programs write it, converted to the UTF-8 that a parser accepts: no byte order mark, UTF-16 decoded,
//! U+FFFD for every unpaired surrogate and for invalid UTF-8, and `null` for numbers that are out of range. Programs
//! that cut texts by UTF-16 units write such halves (`"\ud83d"`), and parsers refuse the whole file because of one.

#![warn(missing_docs)]

mod escapes;
mod numbers;
mod utf16;
mod utf8;

use std::io::{self, BufRead, Read};

use escapes::Escapes;
use numbers::Numbers;
use utf8::Utf8;
use utf16::Utf16;

/// Bytes read at once.
const CHUNK: usize = 1 << 16;

/// Input as UTF-8, with everything replaced that parsers refuse.
pub struct JsonText<R> {
    input: R,
    chunk: Vec<u8>,
    /// `None` until the first bytes are read.
    encoding: Option<Encoding>,
    escapes: Escapes,
    numbers: Numbers,
    text: Vec<u8>,
    /// Number of consumed bytes of `text`.
    at: usize,
    is_at_end: bool,
}

enum Encoding {
    Utf8(Utf8),
    Utf16(Utf16),
}

impl Encoding {
    fn push(&mut self, bytes: &[u8], out: &mut String) {
        match self {
            Encoding::Utf8(utf8) => utf8.push(bytes, out),
            Encoding::Utf16(utf16) => utf16.push(bytes, out),
        }
    }

    fn end(&mut self, out: &mut String) {
        match self {
            Encoding::Utf8(utf8) => utf8.end(out),
            Encoding::Utf16(utf16) => utf16.end(out),
        }
    }
}

impl<R: Read> JsonText<R> {
    /// Starts at the current position of `input`. A byte order mark counts only there.
    pub fn new(input: R) -> JsonText<R> {
        JsonText::in_chunks(input, CHUNK)
    }

    fn in_chunks(input: R, bytes: usize) -> JsonText<R> {
        JsonText {
            input,
            chunk: vec![0; bytes],
            encoding: None,
            escapes: Escapes::default(),
            numbers: Numbers::default(),
            text: Vec::new(),
            at: 0,
            is_at_end: false,
        }
    }

    /// Returns the number of invalid UTF-8 sequences so far, each replaced by U+FFFD.
    pub fn replaced(&self) -> usize {
        match &self.encoding {
            Some(Encoding::Utf8(utf8)) => utf8.replaced,
            _ => 0,
        }
    }

    /// Fills `text` with the next chunk, which may turn out empty.
    fn advance(&mut self) -> io::Result<()> {
        let mut read = 0;
        while read < self.chunk.len() && !self.is_at_end {
            match self.input.read(&mut self.chunk[read..]) {
                Ok(0) => self.is_at_end = true,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.text.clear();
        self.at = 0;
        let mut begin = 0;
        let encoding = self.encoding.get_or_insert_with(|| {
            let (encoding, mark) = match &self.chunk[..read] {
                [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8(Utf8::default()), 3),
                [0xff, 0xfe, ..] => (Encoding::Utf16(Utf16::new(u16::from_le_bytes)), 2),
                [0xfe, 0xff, ..] => (Encoding::Utf16(Utf16::new(u16::from_be_bytes)), 2),
                _ => (Encoding::Utf8(Utf8::default()), 0),
            };
            begin = mark;
            encoding
        });
        let mut decoded = String::with_capacity(read);
        encoding.push(&self.chunk[begin..read], &mut decoded);
        let mut escaped = Vec::with_capacity(decoded.len());
        if self.is_at_end {
            encoding.end(&mut decoded);
        }
        self.escapes.push(decoded.as_bytes(), &mut escaped);
        if self.is_at_end {
            self.escapes.end(&mut escaped);
        }
        self.numbers.push(&escaped, &mut self.text);
        if self.is_at_end {
            self.numbers.end(&mut self.text);
        }
        Ok(())
    }
}

impl<R: Read> BufRead for JsonText<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.at == self.text.len() && !self.is_at_end {
            self.advance()?;
        }
        Ok(&self.text[self.at..])
    }

    fn consume(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.text.len());
    }
}

impl<R: Read> Read for JsonText<R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // serde_json takes one byte at a time.
        if let (Some(text), [byte]) = (self.text.get(self.at), &mut *buffer) {
            *byte = *text;
            self.at += 1;
            return Ok(1);
        }
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let mark = std::iter::once(0xfeff);
        mark.chain(text.encode_utf16()).flat_map(bytes).collect()
    }

    /// Returns the text, read in chunks of each size from 3 bytes to 24 and at once.
    fn read(bytes: &[u8]) -> String {
        let text = |size| {
            let mut text = String::new();
            let mut input = JsonText::in_chunks(bytes, size);
            input.read_to_string(&mut text).expect("UTF-8");
            text
        };
        let whole = text(CHUNK);
        for size in 3..=24 {
            assert_eq!(text(size), whole, "in chunks of {size}");
        }
        whole
    }

    #[test]
    fn half_a_surrogate_is_replaced() {
        for (json, expected) in [
            (r#""plain \n \" \\ text""#, r#""plain \n \" \\ text""#),
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\ude00 cut""#, r#""\ufffd cut""#),
            (r#""\ud83d and more""#, r#""\ufffd and more""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""\ud83d\\ude00""#, r#""\ufffd\\ude00""#),
            (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            // The backslash is escaped, so no escape follows.
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            // The parser reports syntax errors.
            (r#""\u12""#, r#""\u12""#),
            (r#""\u12\ud83d""#, r#""\u12\ufffd""#),
            (r#""\ud83d\u12""#, r#""\ufffd\u12""#),
            (r#""\ud83"#, r#""\ud83"#),
            (r#""\ud83d"#, r#""\ufffd"#),
            (r#""\ud83d\"#, r#""\ufffd\"#),
            ("\"\\", "\"\\"),
            ("", ""),
        ] {
            assert_eq!(read(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_replaced_and_counted() {
        for (bytes, expected, replaced) in [
            (&b"\"Gr\xf6\xdfe\""[..], "\"Gr\u{fffd}\u{fffd}e\"", 2),
            ("\"Größe, 鳥, 😀\"".as_bytes(), "\"Größe, 鳥, 😀\"", 0),
            (b"\"\xe2\x82\" \xe2\x82\xac", "\"\u{fffd}\" €", 1),
            (b"\"a\xf0\x9f\x98", "\"a\u{fffd}", 1),
            (b"\x80\xff\xc0", "\u{fffd}\u{fffd}\u{fffd}", 3),
        ] {
            assert_eq!(read(bytes), expected, "{bytes:x?}");
            let mut input = JsonText::in_chunks(bytes, 3);
            input.read_to_end(&mut Vec::new()).expect("read");
            assert_eq!(input.replaced(), replaced, "{bytes:x?}");
        }
    }

    #[test]
    fn numbers_that_no_parser_takes_are_null() {
        let digits = "9".repeat(400);
        for (json, expected) in [
            (
                "[1e999, -1E+400, 1e308, 1e-999]",
                "[null, null, 1e308, 1e-999]".to_owned(),
            ),
            ("{\"a\":1e999}", "{\"a\":null}".to_owned()),
            (
                "[NaN,Infinity,-Infinity,true]",
                "[null,null,null,true]".to_owned(),
            ),
            (
                "[\"1e999\", \"\\\" NaN\", \"\\\\\", 1e999]",
                "[\"1e999\", \"\\\" NaN\", \"\\\\\", null]".to_owned(),
            ),
            ("1e999", "null".to_owned()),
            ("-", "-".to_owned()),
            ("\"no end\n 1e999", "\"no end\n null".to_owned()),
            (&format!("[{digits}]"), "[null]".to_owned()),
            (&format!("[0.{digits}]"), format!("[0.{digits}]")),
            (&"9".repeat(10_000), "9".repeat(10_000)),
        ] {
            assert_eq!(read(json.as_bytes()), expected, "{json}");
        }
    }

    #[test]
    fn utf_16_and_marks_are_read() {
        let json = "{\"a\": \"Größe, 鳥, 😀, \\ud83d\"}";
        let expected = json.replace("\\ud83d", "\\ufffd");
        assert_eq!(read(format!("\u{feff}{json}").as_bytes()), expected);
        assert_eq!(read(&utf16(json, u16::to_le_bytes)), expected);
        assert_eq!(read(&utf16(json, u16::to_be_bytes)), expected);
        assert_eq!(read(&utf16("", u16::to_le_bytes)), "");
        // Half a surrogate pair, and half a unit at the end.
        let mut cut = utf16("a", u16::to_le_bytes);
        cut.extend([0x3d, 0xd8, b'b', 0, 0x3d, 0xd8, 0x3d]);
        assert_eq!(read(&cut), "a\u{fffd}b\u{fffd}\u{fffd}");
    }
}
