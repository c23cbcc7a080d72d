//! GGUF, the file format of the model: a bounded reader and a writer.
//!
//! The reader trusts nothing. Every count and offset is checked against the bytes that are really there before
//! it is used, arrays are decoded when asked for, and tensors may not overlap, so whatever a file says, reading it
//! cannot allocate more than the file holds. The header is in memory; tensors are read when they are packed. Errors
//! name the key or the tensor at fault.

mod header;
mod value;
pub mod write;

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use kernels::{Stored, read_exact_at};

pub use header::TensorInfo;
use header::{Header, Unread};
pub use kernels::BlockType;
pub use value::{Array, Value};

/// Why a file cannot be read as GGUF.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    /// The file cannot be opened or read.
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
    pub bytes: Stored<'a>,
}

/// Where the data of tensors is.
enum Backing {
    File(File),
    Memory(Vec<u8>),
}

/// How much of a file is read first: the header of most models.
const FIRST_READ: usize = 1 << 20;
/// The longest header that is read. That of SmolLM3-3B, with 128,256 tokens, takes 8 MB.
const LONGEST_HEADER: usize = 128 << 20;

/// An open GGUF file: its checked header over its bytes.
pub struct Gguf {
    backing: Backing,
    header: Header,
    /// The file's first bytes, up to the end of the header at least; all of an image in memory is in `backing`.
    start: Vec<u8>,
    /// Length of the whole file.
    len: usize,
    path: Option<PathBuf>,
}

impl Gguf {
    /// Reads the header of `path` and checks all of it. Tensor data is not touched.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        // Reading a folder or a device gives odd errors or none; ask first.
        if !fs::metadata(path)?.is_file() {
            return Err(GgufError::NotGguf);
        }
        let file = File::open(path)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let (header, start) = read_header(&file, len)?;
        Ok(Gguf {
            backing: Backing::File(file),
            header,
            start,
            len,
            path: Some(path.to_owned()),
        })
    }

    /// Reads a GGUF image that is in memory already.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
        let header = Header::parse(&bytes, bytes.len()).map_err(|unread| match unread {
            Unread::Bad(error) => error,
            Unread::Short => GgufError::NotGguf,
        })?;
        Ok(Gguf {
            len: bytes.len(),
            backing: Backing::Memory(bytes),
            header,
            start: Vec::new(),
            path: None,
        })
    }

    /// The file it was opened from, if from a file.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Size of the whole file in bytes.
    pub fn file_bytes(&self) -> usize {
        self.len
    }

    /// The bytes before the tensor data: metadata and tensor descriptions.
    pub fn header_bytes(&self) -> &[u8] {
        &self.start()[..self.header.end]
    }

    /// GGUF version of the file, 2 or 3.
    pub fn version(&self) -> u32 {
        self.header.version
    }

    /// Metadata keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.header.fields.keys().map(String::as_str)
    }

    /// Every metadata key in the order of the file, with its value as stored: the type's id, then the value.
    pub fn stored_fields(&self) -> Vec<(&str, &[u8])> {
        self.header.stored_fields(self.start())
    }

    /// The value of a metadata key.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.header.value(self.start(), key)
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

    /// The number of entries of an array.
    pub fn array_len(&self, key: &str) -> Option<usize> {
        match self.get(key)? {
            Value::Array(array) => Some(array.len()),
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

    /// One tensor's description.
    pub fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensor(name)
    }

    /// One tensor, whose bytes are where they are stored.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let info = self.header.tensor(name)?;
        let bytes = match &self.backing {
            Backing::Memory(bytes) => Stored::Memory(&bytes[info.data.clone()]),
            Backing::File(file) => Stored::File {
                file,
                start: info.data.start as u64,
                len: info.data.len(),
            },
        };
        Some(TensorView {
            ty: info.ty,
            rows: info.rows(),
            cols: info.cols(),
            bytes,
        })
    }

    /// Frees the metadata, once all of it was taken; the tensors stay.
    #[must_use]
    pub fn without_metadata(mut self) -> Gguf {
        self.header.fields.clear();
        self.start = Vec::new();
        self
    }

    /// The file's first bytes, with the whole header among them.
    fn start(&self) -> &[u8] {
        match &self.backing {
            Backing::File(_) => &self.start,
            Backing::Memory(bytes) => bytes,
        }
    }
}

/// Reads as much of the file as its header takes.
fn read_header(file: &File, len: usize) -> Result<(Header, Vec<u8>), GgufError> {
    let mut start = Vec::new();
    loop {
        let have = start.len();
        let want = (2 * have).clamp(FIRST_READ, LONGEST_HEADER).min(len);
        start
            .try_reserve_exact(want - have)
            .map_err(io::Error::from)?;
        start.resize(want, 0);
        read_exact_at(file, have as u64, &mut start[have..])?;
        match Header::parse(&start, len) {
            Ok(header) => {
                start.truncate(header.end);
                start.shrink_to_fit();
                return Ok((header, start));
            }
            Err(Unread::Bad(error)) => return Err(error),
            Err(Unread::Short) if want < LONGEST_HEADER.min(len) => {}
            Err(Unread::Short) => {
                let problem = format!("it is longer than {} MB", LONGEST_HEADER >> 20);
                return Err(GgufError::Header(problem));
            }
        }
    }
}

/// Words of a file, at a length that people can read: a file may hold megabytes of them.
pub fn quote(text: &str) -> String {
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A range of the file's bytes.
type Span = Range<usize>;
