//! Values printed as Python prints them.

use std::fmt::Write as _;

use jiff::civil::Date;
use minijinja::filters;
use minijinja::value::{Kwargs, Rest, StringInput, Value, ValueKind, ValueOrKwargs};
use minijinja::{Error, ErrorKind, Output, State};
use serde::Serialize as _;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Deepest nesting of a printed value.
const MAX_DEPTH: usize = 64;
/// Largest indent.
const MAX_INDENT: usize = 32;
/// Widest field of a formatted string.
const MAX_FIELD_WIDTH: u32 = 1000;

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
        None => repr(value, MAX_DEPTH, &mut out)?,
    }
    Ok(out)
}

/// Writes Python's `repr(value)`; `room` is the nesting that is left.
fn repr(value: &Value, room: usize, out: &mut String) -> Result<(), Error> {
    let deeper = || room.checked_sub(1).ok_or_else(too_deep);
    match value.kind() {
        ValueKind::String => repr_string(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            repr_float(f64::try_from(value.clone())?, out);
        }
        ValueKind::Seq => {
            let room = deeper()?;
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(&item, room, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            let room = deeper()?;
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                repr(&key, room, out)?;
                out.push_str(": ");
                repr(&value.get_item(&key)?, room, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

fn too_deep() -> Error {
    let message = format!("a printed value is nested more than {MAX_DEPTH} deep");
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Rejects a value that is nested deeper than `room`, such as one that contains itself.
fn check_depth(value: &Value, room: usize) -> Result<(), Error> {
    let items = matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if !items && value.kind() != ValueKind::Map {
        return Ok(());
    }
    let room = room.checked_sub(1).ok_or_else(too_deep)?;
    for item in value.try_iter()? {
        check_depth(&item, room)?;
        if !items {
            check_depth(&value.get_item(&item)?, room)?;
        }
    }
    Ok(())
}

fn check_indent(width: usize) -> Result<usize, Error> {
    if width <= MAX_INDENT {
        return Ok(width);
    }
    let message = format!("an indent of {width} is more than {MAX_INDENT}");
    Err(Error::new(ErrorKind::InvalidOperation, message))
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

/// Python's `str.isprintable`, extended by the marks of a prompt's content. Rust keeps the same table behind
/// `escape_debug`, which escapes a combining mark only at the start of a string.
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
    check_depth(value, MAX_DEPTH)?;
    let mut out = Vec::new();
    let written = match indent {
        Some(width) => {
            let spaces = " ".repeat(check_indent(width)?);
            let style = PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut Serializer::with_formatter(&mut out, style))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, PythonSeparators)),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    String::from_utf8(out)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// `value | indent`, of a bounded width.
pub(super) fn indent(
    value: StringInput<'_>,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    let width = match width {
        Some(width) => width,
        None => options.get::<Option<usize>>("width")?.unwrap_or(4),
    };
    filters::indent(value, Some(check_indent(width)?), first, blank, options)
}

/// `"%5s" | format(value)`, with fields of a bounded width.
pub(super) fn format(
    state: &mut State<'_, '_>,
    format: &Value,
    arguments: Rest<ValueOrKwargs>,
) -> Result<Value, Error> {
    check_fields(format.as_str().unwrap_or_default())?;
    filters::format(state, format, arguments)
}

/// Python's methods of strings, lists and dicts; fields of `format` have a bounded width.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    if method == "format" {
        check_fields(value.as_str().unwrap_or_default())?;
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, method, arguments)
}

/// Rejects a format with a wide field: a large number, or `*`, between `%` and its conversion or between braces.
fn check_fields(format: &str) -> Result<(), Error> {
    let until = |field: &'_ str, end: Option<usize>| field[..end.unwrap_or(field.len())].to_owned();
    let after_percent = format.split('%').skip(1);
    let after_percent = after_percent.map(|field| until(field, field.find(char::is_alphabetic)));
    let in_braces = format.split('{').skip(1);
    let in_braces = in_braces.map(|field| until(field, field.find('}')));
    let is_wide = |digits: &str| {
        let width = digits.parse::<u32>();
        !digits.is_empty() && !width.is_ok_and(|width| width <= MAX_FIELD_WIDTH)
    };
    let is_wide = |field: String| {
        field.contains('*') || field.split(|c: char| !c.is_ascii_digit()).any(is_wide)
    };
    if after_percent.chain(in_braces).any(is_wide) {
        let message = format!("a format has a field wider than {MAX_FIELD_WIDTH}");
        return Err(Error::new(ErrorKind::InvalidOperation, message));
    }
    Ok(())
}

/// One line with `, ` and `: `, the separators of `json.dumps`.
struct PythonSeparators;

impl Formatter for PythonSeparators {
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
