//! The GGUF v3 writer: the header in one piece; the caller writes the data of the tensors.

use kernels::BlockType;

use super::value::Value;

/// A metadata value to write.
#[derive(Clone, Debug)]
pub enum Field {
    /// A `u32`.
    U32(u32),
    /// An `i32`.
    I32(i32),
    /// An `f32`.
    F32(f32),
    /// A boolean.
    Bool(bool),
    /// Text.
    String(String),
    /// An array of text.
    Strings(Vec<String>),
    /// An array of `i32`.
    I32s(Vec<i32>),
    /// An array of `f32`.
    F32s(Vec<f32>),
    /// A value of any type, after its type, as [`Gguf::stored_fields`](super::Gguf::stored_fields) returns it.
    Stored(Vec<u8>),
}

impl Field {
    /// A field with a value that was read; `None` for unsupported types.
    pub fn from_value(value: &Value<'_>) -> Option<Field> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "GGUF writers store these as f32"
        )]
        let field = match value {
            Value::Unsigned(_) | Value::Signed(_) => Field::U32(value.as_u64()?.try_into().ok()?),
            Value::Float(value) => Field::F32(*value as f32),
            Value::Bool(value) => Field::Bool(*value),
            Value::String(text) => Field::String((*text).to_owned()),
            Value::NotUtf8(_) => return None,
            Value::Array(array) => match array.iter().next() {
                Some(Value::String(_)) => {
                    Field::Strings(array.strings()?.into_iter().map(str::to_owned).collect())
                }
                Some(Value::Float(_)) => Field::F32s(
                    array
                        .iter()
                        .map(|value| {
                            if let Value::Float(value) = value {
                                value as f32
                            } else {
                                0.0
                            }
                        })
                        .collect(),
                ),
                _ => Field::I32s(array.i32s()?),
            },
        };
        Some(field)
    }
}

/// A tensor of the file to write.
#[derive(Clone, Debug)]
pub struct TensorSpec {
    /// Its name.
    pub name: String,
    /// Storage type of its values.
    pub ty: BlockType,
    /// Dimensions, fastest first.
    pub dims: Vec<usize>,
    /// Length of its data in bytes.
    pub len: usize,
}

/// Alignment of tensor data in the files written here.
pub const ALIGNMENT: usize = 32;

/// Zero bytes to write after `len` bytes, up to the next aligned offset.
pub fn padding(len: usize) -> usize {
    len.next_multiple_of(ALIGNMENT) - len
}

/// The header, padded: each tensor's data follows in order, each with its own [`padding`].
pub fn header<'a>(
    fields: impl IntoIterator<Item = (&'a str, Field)>,
    tensors: &[TensorSpec],
) -> Vec<u8> {
    let (mut body, mut count) = (Vec::new(), 0u64);
    for (key, field) in fields {
        string(&mut body, key);
        value(&mut body, &field);
        count += 1;
    }
    let mut out = b"GGUF".to_vec();
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend(body);
    let mut offset = 0;
    for tensor in tensors {
        string(&mut out, &tensor.name);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a tensor has four dimensions at most"
        )]
        out.extend((tensor.dims.len() as u32).to_le_bytes());
        for &dim in &tensor.dims {
            out.extend((dim as u64).to_le_bytes());
        }
        out.extend(tensor.ty.ggml_id().to_le_bytes());
        out.extend((offset as u64).to_le_bytes());
        offset += tensor.len + padding(tensor.len);
    }
    out.resize(out.len() + padding(out.len()), 0);
    out
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn value(out: &mut Vec<u8>, field: &Field) {
    let array = |out: &mut Vec<u8>, kind: u32, len: usize| {
        out.extend(9u32.to_le_bytes());
        out.extend(kind.to_le_bytes());
        out.extend((len as u64).to_le_bytes());
    };
    match field {
        Field::U32(value) => {
            out.extend(4u32.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        Field::I32(value) => {
            out.extend(5u32.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        Field::Stored(bytes) => out.extend(bytes),
        Field::F32(value) => {
            out.extend(6u32.to_le_bytes());
            out.extend(value.to_le_bytes());
        }
        Field::Bool(value) => {
            out.extend(7u32.to_le_bytes());
            out.push((*value).into());
        }
        Field::String(text) => {
            out.extend(8u32.to_le_bytes());
            string(out, text);
        }
        Field::Strings(values) => {
            array(out, 8, values.len());
            values.iter().for_each(|text| string(out, text));
        }
        Field::I32s(values) => {
            array(out, 5, values.len());
            values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes()));
        }
        Field::F32s(values) => {
            array(out, 6, values.len());
            values
                .iter()
                .for_each(|value| out.extend(value.to_le_bytes()));
        }
    }
}
