//! One GGUF file with its own header: a whole model, or a part of one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use kernels::read_exact_at;

use super::error::GgufError;
use super::header::{Header, HeaderError};
use super::value::Value;

/// Storage of the tensors' data.
pub(super) enum Backing {
    File(File),
    Memory(Vec<u8>),
}

/// First bytes to read: the header of most models.
const FIRST_READ_BYTES: usize = 1 << 20;
/// Longest accepted header. That of SmolLM3-3B, with 128,256 tokens, takes 8 MB.
const MAX_HEADER_BYTES: usize = 128 << 20;

/// One file of a model.
pub(super) struct FileBytes {
    pub(super) backing: Backing,
    /// Its path, if it is a file.
    pub(super) path: Option<PathBuf>,
    /// The first bytes of a file, up to the end of the header; empty for an image in memory.
    pub(super) start: Vec<u8>,
    pub(super) header_len: usize,
    pub(super) len: usize,
}

/// A file with its own header: a whole model or a part of one.
pub(super) struct FilePart {
    pub(super) file: FileBytes,
    pub(super) header: Header,
}

impl FilePart {
    /// Reads the header of `path` and checks all of it.
    pub(super) fn open(path: &Path) -> Result<FilePart, GgufError> {
        // Errors of reading a folder or a device differ by system.
        if !fs::metadata(path)?.is_file() {
            return Err(GgufError::NotGguf);
        }
        let file = File::open(path)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        let (header, start) = read_header(&file, len)?;
        let file = FileBytes {
            backing: Backing::File(file),
            path: Some(path.to_owned()),
            start,
            header_len: header.end,
            len,
        };
        Ok(FilePart { file, header })
    }

    /// The value of a metadata key.
    pub(super) fn get(&self, key: &str) -> Option<Value<'_>> {
        self.header.value(self.file.start(), key)
    }

    pub(super) fn tensor_count(&self) -> usize {
        self.header.tensors.len() + self.header.unsupported.len()
    }

    /// Returns true if a key of `other`, except for `except`, has another value here.
    pub(super) fn contradicts(&self, other: &FilePart, except: &str) -> bool {
        let ours: BTreeMap<_, _> = (self.header.stored_fields(self.file.start()))
            .into_iter()
            .collect();
        let theirs = other.header.stored_fields(other.file.start());
        theirs.into_iter().any(|(key, value)| {
            let ours = ours.get(key);
            key != except && ours.is_some_and(|ours| *ours != value)
        })
    }

    /// Returns true if another GGUF file follows the data of this one.
    pub(super) fn has_another_behind(&self) -> Result<bool, GgufError> {
        let Backing::File(file) = &self.file.backing else {
            return Ok(false);
        };
        for at in self.header.data_ends {
            let mut magic = [0; 4];
            if self.file.len.saturating_sub(at) >= magic.len() {
                read_exact_at(file, at as u64, &mut magic)?;
                if magic == *b"GGUF" {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl FileBytes {
    /// The file's first bytes, with the whole header among them.
    pub(super) fn start(&self) -> &[u8] {
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
