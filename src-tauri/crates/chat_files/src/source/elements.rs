//! The values of a JSON file, one at a time: those of a list, or values behind one another. If one cannot be parsed,
//! its end is found by its brackets, and the next one is read.

use std::io::{self, BufRead, Read};

/// A file that is parsed one value at a time.
pub(crate) struct Elements<R> {
    input: R,
    /// True within a list.
    in_list: bool,
    at: Position,
    value: ValueScan,
}

/// Next part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextElement {
    /// A value, for [`Elements::value`].
    Value,
    /// Bytes that are invalid between values; skipped.
    Stray,
    End,
    /// The file ends within a list.
    CutOff,
}

/// The position up to which a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    line: u64,
    column: u64,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// The state of the scan of a value.
#[derive(Default)]
struct ValueScan {
    begun: bool,
    ended: bool,
    /// Number of open brackets.
    depth: u64,
    in_string: bool,
    is_escaped: bool,
}

impl ValueScan {
    /// Returns true if the value ended before this byte.
    fn ends_before(&self, byte: u8) -> bool {
        let is_within = self.depth > 0 || self.in_string || !self.begun;
        self.ended || !is_within && (byte.is_ascii_whitespace() || b",:[]{}\"".contains(&byte))
    }

    fn take(&mut self, byte: u8) {
        self.begun = true;
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                // A string ends at the end of its line at the latest: its quotation mark may be missing.
                b'"' | b'\n' => self.in_string = false,
                _ => return,
            }
            self.ended = !self.in_string && self.depth == 0;
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth -= 1;
                self.ended = self.depth == 0;
            }
            _ => {}
        }
    }
}

impl<R: BufRead> Elements<R> {
    pub fn new(input: R) -> Elements<R> {
        Elements {
            input,
            in_list: false,
            at: Position { line: 1, column: 0 },
            value: ValueScan::default(),
        }
    }

    /// Advances behind the current value.
    pub fn next(&mut self) -> io::Result<NextElement> {
        loop {
            let Some(byte) = self.peek()? else {
                return Ok(if self.in_list {
                    NextElement::CutOff
                } else {
                    NextElement::End
                });
            };
            match byte {
                b'[' if !self.in_list => self.in_list = true,
                b']' if self.in_list => self.in_list = false,
                b',' if self.in_list => {}
                b',' | b':' | b']' | b'}' => {
                    self.pass(byte);
                    return Ok(NextElement::Stray);
                }
                _ if byte.is_ascii_whitespace() => {}
                _ => {
                    self.value = ValueScan::default();
                    return Ok(NextElement::Value);
                }
            }
            self.pass(byte);
        }
    }

    /// The next value, which may be read partially.
    pub fn value(&mut self) -> Element<'_, R> {
        Element(self)
    }

    /// Skips the rest of the value. Returns true if its end was found.
    pub fn skip(&mut self) -> io::Result<bool> {
        io::copy(&mut self.value(), &mut io::sink())?;
        Ok(self.value.depth == 0 && !self.value.in_string)
    }

    /// Returns true at the end of the file.
    pub fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.peek()?.is_none())
    }

    pub fn position(&self) -> Position {
        self.at
    }

    #[inline]
    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(self.input.fill_buf()?.first().copied())
    }

    #[inline]
    fn pass(&mut self, byte: u8) {
        self.input.consume(1);
        if byte == b'\n' {
            self.at.line += 1;
            self.at.column = 0;
        } else {
            self.at.column += 1;
        }
    }
}

/// A value, which ends with its last bracket.
pub(crate) struct Element<'e, R>(&'e mut Elements<R>);

impl<R: BufRead> Read for Element<'_, R> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let elements = &mut *self.0;
        let mut read = 0;
        for place in buffer {
            match elements.peek()? {
                Some(byte) if !elements.value.ends_before(byte) => {
                    elements.value.take(byte);
                    elements.pass(byte);
                    *place = byte;
                    read += 1;
                }
                _ => break,
            }
        }
        Ok(read)
    }
}
