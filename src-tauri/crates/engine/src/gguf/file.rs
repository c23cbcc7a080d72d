//! An open model: the checked header in memory, the tensors where they are stored, in one GGUF file or several.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use kernels::{BlockType, Stored};

use super::error::GgufError;
use super::file_part::{Backing, FileBytes, FilePart};
use super::header::{Header, HeaderError, TensorInfo, UnsupportedTensor};
use super::parts;
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

/// An open model: its checked header over the bytes of its file or files.
pub struct Gguf {
    files: Vec<FileBytes>,
    header: Header,
    path: Option<PathBuf>,
}

impl Gguf {
    /// Reads the header of `path` and checks all of it; for a part of a model, the headers of all parts. Tensor data is
    /// not touched.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        let parts = parts::open_all(path, FilePart::open(path)?)?;
        let mut gguf = Gguf::of_parts(parts)?;
        gguf.path = Some(path.to_owned());
        Ok(gguf)
    }

    /// Reads a GGUF image in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf, GgufError> {
        let header = Header::parse(&bytes, bytes.len()).map_err(|error| match error {
            HeaderError::Invalid(error) => error,
            HeaderError::Incomplete => GgufError::NotGguf,
        })?;
        let file = FileBytes {
            len: bytes.len(),
            backing: Backing::Memory(bytes),
            path: None,
            start: Vec::new(),
            header_len: header.end,
        };
        Gguf::of_parts(vec![FilePart { file, header }])
    }

    fn of_parts(parts: Vec<FilePart>) -> Result<Gguf, GgufError> {
        let (mut files, mut whole) = (Vec::new(), None::<Header>);
        for FilePart { file, header } in parts {
            match &mut whole {
                None => whole = Some(header),
                Some(whole) => whole.extend(files.len(), header)?,
            }
            files.push(file);
        }
        Ok(Gguf {
            files,
            header: whole.ok_or(GgufError::NotGguf)?,
            path: None,
        })
    }

    /// Path that it was opened from, any part of a split model; `None` for an image in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// All files, in the order of [`TensorInfo::part`].
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter_map(|file| file.path.as_deref())
    }

    /// Time of the last change, even if the file was renamed or deleted since; `None` for an image in memory.
    ///
    /// # Errors
    /// Fails if the system does not report it.
    pub fn modified(&self) -> io::Result<Option<SystemTime>> {
        let mut last = None;
        for file in &self.files {
            if let Backing::File(file) = &file.backing {
                last = last.max(Some(file.metadata()?.modified()?));
            }
        }
        Ok(last)
    }

    /// Size in bytes, of all files together.
    pub fn file_bytes(&self) -> usize {
        self.files.iter().map(|file| file.len).sum()
    }

    /// The bytes before the tensor data, of each file: metadata and tensor descriptions.
    pub fn headers(&self) -> impl Iterator<Item = &[u8]> {
        (self.files.iter()).map(|file| &file.start()[..file.header_len])
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

    /// Tensors of types that cannot be read, in the order of the file.
    pub fn unsupported_tensors(&self) -> &[UnsupportedTensor] {
        &self.header.unsupported
    }

    /// The tensor of this name, if its type cannot be read.
    pub fn unsupported_tensor(&self, name: &str) -> Option<&UnsupportedTensor> {
        self.header.unsupported_tensor(name)
    }

    /// The info of one tensor.
    pub fn tensor_info(&self, name: &str) -> Option<&TensorInfo> {
        self.header.tensor(name)
    }

    /// One tensor, with a reference to its stored bytes.
    pub fn tensor(&self, name: &str) -> Option<TensorView<'_>> {
        let info = self.header.tensor(name)?;
        let (before, rest) = self.files.split_at(info.part);
        let bytes = match &rest.first()?.backing {
            Backing::Memory(bytes) => Stored::Memory(&bytes[info.data.clone()]),
            Backing::File(file) => Stored::File {
                file,
                files_before: before.iter().map(|file| file.len as u64).sum(),
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
        for file in &mut self.files {
            file.start = Vec::new();
            file.header_len = 0;
        }
        self
    }

    /// The first bytes of the file that has the metadata.
    fn start(&self) -> &[u8] {
        self.files.first().map_or(&[], FileBytes::start)
    }
}
