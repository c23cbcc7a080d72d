//! Metadata values, and the reader of little-endian primitives.

/// The problem of a text.
pub(super) const NOT_UTF8: &str = "text that is not UTF-8";

/// A value type of the GGUF format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    String,
    Array,
    U64,
    I64,
    F64,
}

impl ValueType {
    pub(super) fn from_id(id: u32) -> Option<ValueType> {
        use ValueType::{Array, Bool, F32, F64, I8, I16, I32, I64, String, U8, U16, U32, U64};
        [
            U8, I8, U16, I16, U32, I32, F32, Bool, String, Array, U64, I64, F64,
        ]
        .get(id as usize)
        .copied()
    }

    /// Least bytes of a value: its size, or a string's length prefix.
    pub(super) fn min_bytes(self) -> usize {
        match self {
            ValueType::U8 | ValueType::I8 | ValueType::Bool => 1,
            ValueType::U16 | ValueType::I16 => 2,
            ValueType::U32 | ValueType::I32 | ValueType::F32 => 4,
            ValueType::String | ValueType::U64 | ValueType::I64 | ValueType::F64 => 8,
            ValueType::Array => 12,
        }
    }
}

/// A metadata value, borrowed from the file.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// `u8` to `u64`.
    Unsigned(u64),
    /// `i8` to `i64`.
    Signed(i64),
    /// `f32` or `f64`.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// UTF-8 text.
    String(&'a str),
    /// Text that is not UTF-8.
    NotUtf8(&'a [u8]),
    /// Values of one type.
    Array(Array<'a>),
}

impl Value<'_> {
    /// An integer of any type, if it is not negative.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::Unsigned(value) => Some(value),
            Value::Signed(value) => value.try_into().ok(),
            _ => None,
        }
    }
}

/// An array in its stored form: checked once, decoded on request.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    pub(super) ty: ValueType,
    pub(super) len: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements, in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (ty, mut reader) = (self.ty, Reader::new(self.bytes));
        (0..self.len).map_while(move |_| reader.value(ty).ok())
    }

    /// The elements, if they are strings.
    pub fn strings(&self) -> Option<Vec<&'a str>> {
        self.iter()
            .map(|value| match value {
                Value::String(text) => Some(text),
                _ => None,
            })
            .collect()
    }

    /// The elements, if they are integers that fit.
    pub fn i32s(&self) -> Option<Vec<i32>> {
        self.iter()
            .map(|value| match value {
                Value::Unsigned(value) => value.try_into().ok(),
                Value::Signed(value) => value.try_into().ok(),
                _ => None,
            })
            .collect()
    }
}

/// Reads little-endian values from `bytes`, the prefix of a file in memory; an error is a problem for the message.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Length of the whole file.
    total: usize,
    /// A read went beyond `bytes`, but not beyond the file.
    truncated: bool,
    /// A value was text that is not UTF-8.
    not_utf8: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader::of_prefix(bytes, bytes.len())
    }

    /// A reader of the prefix of a file of `total` bytes.
    pub(super) fn of_prefix(bytes: &'a [u8], total: usize) -> Self {
        Reader {
            bytes,
            at: 0,
            total: total.max(bytes.len()),
            truncated: false,
            not_utf8: false,
        }
    }

    /// Returns true if a value since the last call was text that is not UTF-8.
    pub(super) fn take_not_utf8(&mut self) -> bool {
        std::mem::take(&mut self.not_utf8)
    }

    /// Returns true if more bytes of the file are needed.
    pub(super) fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn remaining(&self) -> usize {
        self.total - self.at
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        if len > self.remaining() {
            return Err(format!(
                "{len} bytes are declared where the file has {} left",
                self.remaining()
            ));
        }
        let Some(taken) = self.bytes.get(self.at..self.at + len) else {
            self.truncated = true;
            return Err("it lies beyond the bytes in memory".to_owned());
        };
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A `u64` count of entries of at least `min_bytes` each, which the rest of the file bounds.
    pub(super) fn count(&mut self, min_bytes: usize) -> Result<usize, String> {
        let count = self.u64()?;
        let most = self.remaining() / min_bytes;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => Err(format!(
                "{count} entries are declared, but the file can hold at most {most}"
            )),
        }
    }

    pub(super) fn string(&mut self) -> Result<&'a str, String> {
        std::str::from_utf8(self.text()?).map_err(|_| NOT_UTF8.to_owned())
    }

    fn text(&mut self) -> Result<&'a [u8], String> {
        let len = self.count(1)?;
        self.take(len)
    }

    pub(super) fn ty(&mut self) -> Result<ValueType, String> {
        let id = self.u32()?;
        ValueType::from_id(id).ok_or_else(|| format!("unknown value type {id}"))
    }

    pub(super) fn value(&mut self, ty: ValueType) -> Result<Value<'a>, String> {
        Ok(match ty {
            ValueType::U8 => Value::Unsigned(u8::from_le_bytes(self.array()?).into()),
            ValueType::U16 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            ValueType::U32 => Value::Unsigned(self.u32()?.into()),
            ValueType::U64 => Value::Unsigned(self.u64()?),
            ValueType::I8 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            ValueType::I16 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            ValueType::I32 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            ValueType::I64 => Value::Signed(i64::from_le_bytes(self.array()?)),
            ValueType::F32 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            ValueType::F64 => Value::Float(f64::from_le_bytes(self.array()?)),
            ValueType::Bool => match self.array::<1>()? {
                [0] => Value::Bool(false),
                [1] => Value::Bool(true),
                [other] => return Err(format!("{other} is not a boolean")),
            },
            ValueType::String => {
                let text = self.text()?;
                std::str::from_utf8(text).map_or_else(
                    |_| {
                        self.not_utf8 = true;
                        Value::NotUtf8(text)
                    },
                    Value::String,
                )
            }
            ValueType::Array => Value::Array(self.checked_array()?),
        })
    }

    /// Checks all of an array, so that decoding it later cannot fail.
    fn checked_array(&mut self) -> Result<Array<'a>, String> {
        let ty = self.ty()?;
        if ty == ValueType::Array {
            return Err("arrays of arrays are not supported".to_owned());
        }
        let len = self.count(ty.min_bytes())?;
        let start = self.at;
        match ty {
            ValueType::String | ValueType::Bool => {
                for index in 0..len {
                    self.value(ty)
                        .map_err(|problem| format!("entry {index}: {problem}"))?;
                }
            }
            _ => {
                self.take(len * ty.min_bytes())?;
            }
        }
        Ok(Array {
            ty,
            len,
            bytes: &self.bytes[start..self.at],
        })
    }
}
