//! GGUF, the file format of the model: a bounded reader and a small writer.
//!
//! The reader trusts nothing. Every count and offset is checked against the bytes that are really there before
//! it is used, arrays are left in the file and decoded when asked for, and tensors may not overlap, so whatever a
//! file says, reading it cannot allocate more than the file holds. Errors name the key or the tensor at fault.

mod header;
mod value;
pub mod write;

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use kernels::FileMap;

use header::Header;
pub use header::TensorInfo;
pub use kernels::BlockType;
pub use value::{Array, Value};

/// Why a file cannot be read as GGUF.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file cannot be opened or mapped.
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    /// The first four bytes are not `GGUF`.
    #[error("this is not a GGUF file")]
    NotGguf,
    /// A version other than 2 and 3, or a big-endian file.
    #[error("GGUF version {0} is not supported (2 and 3 are)")]
    Version(u32),
    /// The header as a whole does not fit: absurd counts, or the file ends too early.
    #[error("the GGUF header is damaged: {0}")]
    Header(String),
    /// A metadata entry is damaged.
    #[error("metadata key `{key}`: {problem}")]
    Key {
        /// The key, or its position where its name cannot be read.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A tensor's description is damaged or its data is not in the file.
    #[error("tensor `{name}`: {problem}")]
    Tensor {
        /// The tensor, or its position where its name cannot be read.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// One tensor's bytes as they lie in the file, row by row.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// How the values are stored.
    pub ty: BlockType,
    /// Rows; 1 for a vector.
    pub rows: usize,
    /// Values in a row.
    pub cols: usize,
    /// `rows × ty.row_bytes(cols)` bytes.
    pub bytes: &'a [u8],
}

enum Backing {
    Map(FileMap),
    Memory(Vec<u8>),
}

/// An open GGUF file: its checked header over its bytes.
pub struct Gguf {
    backing: Backing,
    header: Header,
    path: Option<PathBuf>,
}

impl Gguf {
    /// Maps `path` and checks its whole header. Tensor data is not touched.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        // Mapping a folder or a device gives odd errors or none; ask first.
        if !fs::metadata(path)?.is_file() {
            return Err(GgufError::NotGguf);
        }
        let map = FileMap::open(path)?;
        let header = Header::parse(map.as_slice())?;
        Ok(Gguf {
            backing: Backing::Map(map),
            header,
            path: Some(path.to_owned()),
        })
    }

    /// Reads a GGUF image that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
        let header = Header::parse(&bytes)?;
        Ok(Gguf {
            backing: Backing::Memory(bytes),
            header,
            path: None,
        })
    }

    /// The file it was opened from, if from a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Size of the whole file in bytes.
    pub fn file_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// The bytes before the tensor data: metadata and tensor descriptions.
    pub fn header_bytes(&self) -> &[u8] {
        &self.bytes()[..self.header.end]
    }

    /// GGUF version of the file, 2 or 3.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// Metadata keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.header.fields.keys().map(String::as_str)
    }

    /// The value of a metadata key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.header.value(self.bytes(), key)
    }

    /// A string value.
    pub fn str(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// An unsigned value of any integer type that fits.
    pub fn u32(&self, key: &str) -> Option<u32> {
        self.get(key)?.as_u64()?.try_into().ok()
    }

    /// A floating-point value.
    pub fn f32(&self, key: &str) -> Option<f32> {
        match self.get(key)? {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "GGUF writers store these as f32"
            )]
            Value::Float(value) => Some(value as f32),
            _ => None,
        }
    }

    /// A boolean value.
    pub fn bool(&self, key: &str) -> Option<bool> {
        match self.get(key)? {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// An array of strings.
    pub fn strings(&self, key: &str) -> Option<Vec<&str>> {
        match self.get(key)? {
            Value::Array(array) => array.strings(),
            _ => None,
        }
    }

    /// An array of integers, each of which fits an `i32`.
    pub fn i32s(&self, key: &str) -> Option<Vec<i32>> {
        match self.get(key)? {
            Value::Array(array) => array.i32s(),
            _ => None,
        }
    }

    /// All tensors, in the order of the file.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.header.tensors
    }

    /// One tensor's bytes.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let info = self.header.tensor(name)?;
        let bytes = &self.bytes()[info.data.clone()];
        Some(TensorView {
            ty: info.ty,
            rows: info.rows(),
            cols: info.cols(),
            bytes,
        })
    }

    /// Tells the operating system that a tensor's pages are not needed any more: they leave the resident set and
    /// are read again from the file should they be touched.
    pub fn release(&self, name: &str) {
        if let (Backing::Map(map), Some(info)) = (&self.backing, self.header.tensor(name)) {
            map.release(info.data.clone());
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.backing {
            Backing::Map(map) => map.as_slice(),
            Backing::Memory(bytes) => bytes,
        }
    }
}

/// A range of the file's bytes.
type Span = Range<usize>;
