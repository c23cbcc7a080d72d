//! An open GGUF file: the checked header in memory, the tensors where they are stored.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kernels::{BlockType, Stored, read_exact_at};

use super::error::GgufError;
use super::header::{Header, HeaderError, TensorInfo};
use super::value::Value;

/// One tensor's bytes as stored in the file, row by row.
#[derive(Clone, Copy, Debug)]
pub struct TensorView<'a> {
    /// Storage type of the values.
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

/// First bytes to read: the header of most models.
const FIRST_READ_BYTES: usize = 1 << 20;
/// Longest accepted header. That of SmolLM3-3B, with 128,256 tokens, takes 8 MB.
const MAX_HEADER_BYTES: usize = 128 << 20;

/// An open GGUF file: its checked header over its bytes.
pub struct Gguf {
    backing: Backing,
    header: Header,
    /// The first bytes of a file, up to the end of the header; empty for an image in memory.
    start: Vec<u8>,
    /// Length of the whole file.
    len: usize,
    path: Option<PathBuf>,
}

impl Gguf {
    /// Reads the header of `path` and checks all of it. Tensor data is not touched.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        // Errors of reading a folder or a device differ by system.
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

    /// Reads a GGUF image in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
        let header = Header::parse(&bytes, bytes.len()).map_err(|error| match error {
            HeaderError::Invalid(error) => error,
            HeaderError::Incomplete => GgufError::NotGguf,
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

    /// When the file was last changed, also where it goes by another name now or by none; `None` of an image in memory.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn modified(&self) -> io::Result<Option<SystemTime>> {
        match &self.backing {
            Backing::File(file) => file.metadata()?.modified().map(Some),
            Backing::Memory(_) => Ok(None),
        }
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

    /// The info of one tensor.
    pub fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensor(name)
    }

    /// One tensor, with a reference to its stored bytes.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let info = self.header.tensor(name)?;
        let bytes = match &self.backing {
            Backing::Memory(bytes) => Stored::Memory(&bytes[info.data.clone()]),
            Backing::File(file) => Stored::File {
                file,
                start: info.data.start as u64,
                len: info.data.len(),
                observer: None,
            },
        };
        Some(TensorView {
            ty: info.ty,
            rows: info.rows(),
            cols: info.cols(),
            bytes,
        })
    }

    /// Frees the metadata and keeps the tensors.
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
        let want = (2 * have)
            .clamp(FIRST_READ_BYTES, MAX_HEADER_BYTES)
            .min(len);
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
            Err(HeaderError::Invalid(error)) => return Err(error),
            Err(HeaderError::Incomplete) if want < MAX_HEADER_BYTES.min(len) => {}
            Err(HeaderError::Incomplete) => {
                let problem = format!("it is longer than {} MB", MAX_HEADER_BYTES >> 20);
                return Err(GgufError::Header(problem));
            }
        }
    }
}
