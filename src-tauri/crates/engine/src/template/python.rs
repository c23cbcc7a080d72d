//! Values printed as Python prints them.

use std::fmt::Write as _;

use jiff::civil::Date;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Error, ErrorKind, Output, State};
use serde::Serialize as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Writes what `{{ value }}` prints.
pub(super) fn write_value(
    out: &mut Output<'_>,
    _state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => Ok(out.write_str(text)?),
        None => Ok(out.write_str(&str_of(value)?)?),
    }
}

/// Python's `str(value)`: strings as they are, everything else as `repr` shows it.
pub(super) fn str_of(value: &Value) -> Result<String, Error> {
    let mut out = String::new();
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => repr(value, &mut out)?,
    }
    Ok(out)
}

fn repr(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => repr_string(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            repr_float(f64::try_from(value.clone())?, out);
        }
        ValueKind::Seq => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(&item, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(&key, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// Single quotes, unless the text has one and no double quote.
fn repr_string(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c == quote => out.extend(['\\', quote]),
            _ if is_printable(c) => out.push(c),
            _ => push_escape(u32::from(c), out),
        }
    }
    out.push(quote);
}

fn push_escape(code: u32, out: &mut String) {
    out.push_str(&match code {
        0..=0xff => format!("\\x{code:02x}"),
        0x100..=0xffff => format!("\\u{code:04x}"),
        _ => format!("\\U{code:08x}"),
    });
}

/// Python's `str.isprintable`, and the marks that a prompt's content carries. Rust keeps the same table behind `escape_debug`, which escapes a
/// combining mark only at the start of a string.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' | '\u{fdd0}'..='\u{fdd2}' => true,
        _ if c.is_ascii() => false,
        _ => format!("a{c}").escape_debug().count() == 2,
    }
}

/// The shortest digits that read back as `value`, with an exponent of two digits at least
/// outside of 1e-4 ≤ |value| < 1e16.
fn repr_float(value: f64, out: &mut String) {
    let digits = format!("{value:?}");
    match digits.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, exponent) = match exponent.strip_prefix('-') {
                Some(exponent) => ('-', exponent),
                None => ('+', exponent),
            };
            // Writing to a String cannot fail.
            let _ = write!(out, "{mantissa}e{sign}{exponent:0>2}");
        }
        None => out.push_str(&digits.to_lowercase()),
    }
}

/// `value | tojson`: `json.dumps` without escapes for HTML or for letters beyond ASCII.
pub(super) fn to_json(
    value: &Value,
    indent: Option<usize>,
    options: Kwargs,
) -> Result<String, Error> {
    let indent = match indent {
        Some(indent) => Some(indent),
        None => options.get::<Option<usize>>("indent")?,
    };
    let mut out = Vec::new();
    let written = match indent {
        Some(width) => {
            let spaces = " ".repeat(width);
            let style = PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut out, style))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Spaced)),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(out)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// One line with `, ` and `: `, the separators of `json.dumps`.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        writer.write_all(if first { b"" } else { b", " })
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
    ) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

/// `today` at midnight by a strftime `format`, with English names in every locale.
pub(super) fn strftime(today: Date, format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, today.at(0, 0, 0, 0))
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}
